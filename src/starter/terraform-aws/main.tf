# A virtual machine of AWS. Stopping the workspace stops the machine and keeps its disk.
terraform {
  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.0"
    }
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
  }
}

variable "region" {
  description = "The region of the machines."
  type        = string
  default     = "eu-central-1"
}

variable "subnet_id" {
  description = "The subnet for the machines. If empty, a subnet of the default network."
  type        = string
  default     = ""
}

provider "aws" {
  region = var.region
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "instance_type" {
  name         = "instance_type"
  display_name = "Size"
  mutable      = true
  default      = "t3.large"
  option {
    name  = "2 processors, 4 GiB"
    value = "t3.medium"
  }
  option {
    name  = "2 processors, 8 GiB"
    value = "t3.large"
  }
  option {
    name  = "4 processors, 16 GiB"
    value = "t3.xlarge"
  }
  option {
    name  = "8 processors, 32 GiB"
    value = "t3.2xlarge"
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

data "aws_ami" "debian" {
  most_recent = true
  # The account of the Debian project.
  owners = ["136693071363"]
  filter {
    name   = "name"
    values = ["debian-13-amd64-*"]
  }
}

locals {
  name = "slipway-${data.coder_workspace_owner.me.name}-${data.coder_workspace.me.name}"
  # Runs at each boot. The agent runs as "admin", the default user of Debian's images.
  user_data = <<-EOT
    Content-Type: multipart/mixed; boundary="//"
    MIME-Version: 1.0

    --//
    Content-Type: text/cloud-config; charset="us-ascii"

    #cloud-config
    packages: [curl, git]
    cloud_final_modules:
      - [scripts-user, always]

    --//
    Content-Type: text/x-shellscript; charset="us-ascii"

    #!/bin/sh
    echo "${base64encode(coder_agent.main.init_script)}" | base64 -d > /run/slipway-init.sh
    exec sudo -u admin --set-home env CODER_AGENT_TOKEN='${coder_agent.main.token}' sh -c 'cd && exec sh /run/slipway-init.sh'
    --//--
  EOT
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

resource "aws_instance" "workspace" {
  ami                         = data.aws_ami.debian.id
  instance_type               = data.coder_parameter.instance_type.value
  subnet_id                   = var.subnet_id != "" ? var.subnet_id : null
  user_data                   = local.user_data
  user_data_replace_on_change = false

  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    volume_size = tonumber(data.coder_parameter.disk.value)
    encrypted   = true
  }
  tags = {
    Name            = local.name
    "slipway:owner" = data.coder_workspace_owner.me.name
  }
  lifecycle {
    # A newer image must not replace the machine of an existing workspace.
    ignore_changes = [ami]
  }
}

resource "aws_ec2_instance_state" "workspace" {
  instance_id = aws_instance.workspace.id
  state       = data.coder_workspace.me.transition == "start" ? "running" : "stopped"
}

resource "coder_metadata" "workspace" {
  resource_id = aws_instance.workspace.id
  item {
    key   = "region"
    value = var.region
  }
  item {
    key   = "size"
    value = data.coder_parameter.instance_type.value
  }
}
