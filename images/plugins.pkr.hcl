# What `packer init` of a current Packer installs. Packer 1.6.6 has these built in, and is not given
# this file (mvstack image validate). Versions: the newest of each plugin's releases that the facts
# name; to be confirmed by the first `packer init` with a network, which has not been run here.
packer {
  required_plugins {
    azure = {
      source  = "github.com/hashicorp/azure"
      version = "~> 2.3"
    }
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = "~> 1.3"
    }
    qemu = {
      source  = "github.com/hashicorp/qemu"
      version = "~> 1.1"
    }
  }
}
