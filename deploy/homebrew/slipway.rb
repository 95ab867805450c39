class Slipway < Formula
  desc "Self-hosted control plane for development workspaces and AI coding-agent chats"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@URL@/slipway-darwin-arm64.gz"
      sha256 "@SHA256:slipway-darwin-arm64.gz@"
    end
    on_intel do
      url "@URL@/slipway-darwin-amd64.gz"
      sha256 "@SHA256:slipway-darwin-amd64.gz@"
    end
  end
  on_linux do
    on_arm do
      url "@URL@/slipway-linux-arm64.gz"
      sha256 "@SHA256:slipway-linux-arm64.gz@"
    end
    on_intel do
      url "@URL@/slipway-linux-amd64.gz"
      sha256 "@SHA256:slipway-linux-amd64.gz@"
    end
  end

  def install
    libexec.install Dir["slipway-*"].first => "slipway"
    chmod 0755, libexec/"slipway"
    # `slipway upgrade` leaves the file to `brew upgrade`.
    (libexec/"installed-by").write "brew\n"
    bin.install_symlink libexec/"slipway"
  end

  service do
    run [opt_bin/"slipway", "serve", "--data-dir=#{var}/slipway"]
    keep_alive true
    log_path var/"log/slipway.log"
    error_log_path var/"log/slipway.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/slipway version")
  end
end
