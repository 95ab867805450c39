# A container on a Docker Engine with a home volume that outlives it. The provider uses the engine in DOCKER_HOST, or the local one.
terraform {
  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.0"
    }
    docker = {
      source  = "kreuzwerker/docker"
      version = "~> 3.0"
    }
  }
}

variable "docker_host" {
  description = "Address of the Docker Engine, such as unix:///var/run/docker.sock. If empty, the provider's default."
  type        = string
  default     = ""
}

provider "docker" {
  host = var.docker_host != "" ? var.docker_host : null
}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "image" {
  name         = "image"
  display_name = "Image"
  description  = "A Debian or Ubuntu image with curl."
  default      = "mcr.microsoft.com/devcontainers/base:2.1.13-trixie"
  icon         = "/icon/docker.svg"
}

data "coder_parameter" "memory" {
  name         = "memory"
  display_name = "Memory"
  type         = "number"
  mutable      = true
  default      = "4"
  option {
    name  = "2 GiB"
    value = "2"
  }
  option {
    name  = "4 GiB"
    value = "4"
  }
  option {
    name  = "8 GiB"
    value = "8"
  }
}

locals {
  name = "slipway-${data.coder_workspace.me.id}"
  # Inside the container, loopback addresses do not lead to the server.
  init_script = replace(coder_agent.main.init_script, "/localhost|127\\.0\\.0\\.1/", "host.docker.internal")
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = data.coder_provisioner.me.arch

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
}

resource "docker_image" "main" {
  name         = data.coder_parameter.image.value
  keep_locally = true
}

resource "docker_volume" "home" {
  name = "${local.name}-home"
  labels {
    label = "slipway.owner"
    value = data.coder_workspace_owner.me.name
  }
  lifecycle {
    ignore_changes = all
  }
}

resource "docker_container" "workspace" {
  count      = data.coder_workspace.me.start_count
  name       = local.name
  hostname   = data.coder_workspace.me.name
  image      = docker_image.main.image_id
  user       = "vscode"
  entrypoint = ["sh", "-c", local.init_script]
  env        = ["CODER_AGENT_TOKEN=${coder_agent.main.token}"]
  memory     = tonumber(data.coder_parameter.memory.value) * 1024

  host {
    host = "host.docker.internal"
    ip   = "host-gateway"
  }
  volumes {
    container_path = "/home"
    volume_name    = docker_volume.home.name
  }
}
