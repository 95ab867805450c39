# A pod with a home on a persistent volume. Stopping the workspace removes the pod and keeps the volume.
terraform {
  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.0"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "~> 2.0"
    }
  }
}

variable "namespace" {
  description = "The namespace for workspaces. It must exist."
  type        = string
  default     = "slipway-workspaces"
}

variable "kubeconfig" {
  description = "Path of a kubeconfig on the server's machine. If empty, the service account of the server's pod."
  type        = string
  default     = ""
}

provider "kubernetes" {
  config_path = var.kubeconfig != "" ? var.kubeconfig : null
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "image" {
  name         = "image"
  display_name = "Image"
  default      = "mcr.microsoft.com/devcontainers/base:2.1.13-trixie"
}

data "coder_parameter" "cpu" {
  name         = "cpu"
  display_name = "Processors"
  type         = "number"
  mutable      = true
  default      = "2"
  validation {
    min = 1
    max = 16
  }
}

data "coder_parameter" "memory" {
  name         = "memory"
  display_name = "Memory (GiB)"
  type         = "number"
  mutable      = true
  default      = "4"
  validation {
    min = 1
    max = 64
  }
}

data "coder_parameter" "disk" {
  name         = "disk"
  display_name = "Home (GiB)"
  type         = "number"
  default      = "10"
  validation {
    min       = 1
    max       = 500
    monotonic = "increasing"
  }
}

locals {
  name = "slipway-${data.coder_workspace.me.id}"
  labels = {
    "app.kubernetes.io/name"      = "slipway-workspace"
    "app.kubernetes.io/instance"  = local.name
    "slipway.dev/workspace-owner" = data.coder_workspace_owner.me.name
  }
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
}

resource "kubernetes_persistent_volume_claim_v1" "home" {
  metadata {
    name      = "${local.name}-home"
    namespace = var.namespace
    labels    = local.labels
  }
  # Some clusters create the volume only when a pod uses it.
  wait_until_bound = false
  spec {
    access_modes = ["ReadWriteOnce"]
    resources {
      requests = {
        storage = "${data.coder_parameter.disk.value}Gi"
      }
    }
  }
}

resource "kubernetes_pod_v1" "workspace" {
  count = data.coder_workspace.me.start_count

  metadata {
    name      = local.name
    namespace = var.namespace
    labels    = local.labels
  }
  spec {
    restart_policy                  = "Always"
    automount_service_account_token = false
    security_context {
      run_as_user     = 1000
      fs_group        = 1000
      run_as_non_root = true
    }
    container {
      name    = "workspace"
      image   = data.coder_parameter.image.value
      command = ["sh", "-c", coder_agent.main.init_script]
      env {
        name  = "CODER_AGENT_TOKEN"
        value = coder_agent.main.token
      }
      env {
        name  = "HOME"
        value = "/home/vscode"
      }
      resources {
        requests = {
          cpu    = "250m"
          memory = "512Mi"
        }
        limits = {
          cpu    = data.coder_parameter.cpu.value
          memory = "${data.coder_parameter.memory.value}Gi"
        }
      }
      volume_mount {
        name       = "home"
        mount_path = "/home/vscode"
      }
    }
    volume {
      name = "home"
      persistent_volume_claim {
        claim_name = kubernetes_persistent_volume_claim_v1.home.metadata[0].name
      }
    }
  }
}
