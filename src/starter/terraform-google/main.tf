# A virtual machine of Google Cloud with a disk that outlives it. Stopping the workspace removes the machine and keeps the disk.
terraform {
  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.0"
    }
    google = {
      source  = "hashicorp/google"
      version = "~> 7.0"
    }
  }
}

variable "project" {
  description = "The ID of the project."
  type        = string
}

variable "zone" {
  description = "The zone of the machines."
  type        = string
  default     = "europe-west3-a"
}

provider "google" {
  project = var.project
  zone    = var.zone
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "machine_type" {
  name         = "machine_type"
  display_name = "Size"
  mutable      = true
  default      = "e2-standard-2"
  option {
    name  = "2 processors, 4 GiB"
    value = "e2-medium"
  }
  option {
    name  = "2 processors, 8 GiB"
    value = "e2-standard-2"
  }
  option {
    name  = "4 processors, 16 GiB"
    value = "e2-standard-4"
  }
  option {
    name  = "8 processors, 32 GiB"
    value = "e2-standard-8"
  }
}

data "coder_parameter" "disk" {
  name         = "disk"
  display_name = "Disk (GiB)"
  type         = "number"
  default      = "30"
  validation {
    min       = 10
    max       = 1000
    monotonic = "increasing"
  }
}

locals {
  name = "slipway-${data.coder_workspace.me.id}"
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"

  metadata {
    key          = "cpu"
    display_name = "Processor"
    script       = "slipway stat cpu"
    interval     = 15
    timeout      = 10
  }
  metadata {
    key          = "memory"
    display_name = "Memory"
    script       = "slipway stat mem"
    interval     = 15
    timeout      = 10
  }
  metadata {
    key          = "disk"
    display_name = "Disk"
    script       = "slipway stat disk --path /"
    interval     = 120
    timeout      = 10
  }
}

resource "google_compute_disk" "root" {
  name  = local.name
  type  = "pd-balanced"
  size  = tonumber(data.coder_parameter.disk.value)
  image = "debian-cloud/debian-13"
  lifecycle {
    # A newer image must not replace the disk of an existing workspace.
    ignore_changes = [name, image]
  }
}

resource "google_compute_instance" "workspace" {
  count        = data.coder_workspace.me.start_count
  name         = local.name
  machine_type = data.coder_parameter.machine_type.value

  boot_disk {
    auto_delete = false
    source      = google_compute_disk.root.id
  }
  network_interface {
    network = "default"
    access_config {}
  }
  shielded_instance_config {
    enable_secure_boot = true
  }
  # Runs at each boot as root. The agent runs as the user slipway.
  metadata_startup_script = <<-EOT
    #!/bin/sh
    id slipway >/dev/null 2>&1 || useradd --create-home --shell /bin/bash slipway
    command -v git >/dev/null || { apt-get update && apt-get install -y curl git sudo; }
    echo "slipway ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/slipway
    echo "${base64encode(coder_agent.main.init_script)}" | base64 -d > /run/slipway-init.sh
    exec sudo -u slipway --set-home env CODER_AGENT_TOKEN='${coder_agent.main.token}' sh -c 'cd && exec sh /run/slipway-init.sh'
  EOT
}
