# A virtual machine of Hetzner Cloud with a volume for homes. Stopping the workspace removes the machine, which would cost money even
# while it is switched off, and keeps the volume.
terraform {
  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.0"
    }
    hcloud = {
      source  = "hetznercloud/hcloud"
      version = "~> 1.50"
    }
  }
}

variable "hcloud_token" {
  description = "An API token of the project with read and write access."
  type        = string
  sensitive   = true
}

provider "hcloud" {
  token = var.hcloud_token
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "location" {
  name         = "location"
  display_name = "Location"
  default      = "fsn1"
  option {
    name  = "Falkenstein"
    value = "fsn1"
  }
  option {
    name  = "Nuremberg"
    value = "nbg1"
  }
  option {
    name  = "Helsinki"
    value = "hel1"
  }
}

data "coder_parameter" "server_type" {
  name         = "server_type"
  display_name = "Size"
  mutable      = true
  default      = "cx32"
  option {
    name  = "2 processors, 4 GiB"
    value = "cx22"
  }
  option {
    name  = "4 processors, 8 GiB"
    value = "cx32"
  }
  option {
    name  = "8 processors, 16 GiB"
    value = "cx42"
  }
}

data "coder_parameter" "disk" {
  name         = "disk"
  display_name = "Home (GB)"
  type         = "number"
  default      = "20"
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

resource "hcloud_volume" "home" {
  name     = local.name
  size     = tonumber(data.coder_parameter.disk.value)
  location = data.coder_parameter.location.value
  format   = "ext4"
  lifecycle {
    ignore_changes = [name, format]
  }
}

resource "hcloud_server" "workspace" {
  count       = data.coder_workspace.me.start_count
  name        = local.name
  server_type = data.coder_parameter.server_type.value
  location    = data.coder_parameter.location.value
  image       = "debian-13"
  labels = {
    "slipway-owner" = data.coder_workspace_owner.me.name
  }
  user_data = <<-EOT
    #cloud-config
    packages: [curl, git, sudo]
    write_files:
      - path: /run/slipway-init.sh
        encoding: b64
        content: ${base64encode(coder_agent.main.init_script)}
        permissions: "0755"
    runcmd:
      - udevadm settle
      - while [ ! -e ${hcloud_volume.home.linux_device} ]; do sleep 1; done
      - mount ${hcloud_volume.home.linux_device} /home
      - id slipway || useradd --create-home --shell /bin/bash slipway
      - chown slipway:slipway /home/slipway
      - echo "slipway ALL=(ALL) NOPASSWD:ALL" > /etc/sudoers.d/slipway
      - cd /home/slipway && exec sudo -u slipway --set-home env CODER_AGENT_TOKEN=${coder_agent.main.token} sh /run/slipway-init.sh
  EOT
}

resource "hcloud_volume_attachment" "home" {
  count     = data.coder_workspace.me.start_count
  volume_id = hcloud_volume.home.id
  server_id = hcloud_server.workspace[0].id
  automount = false
}
