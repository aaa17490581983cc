/// The daemon's version, as `--version` and `GET /v1/status` say it.
enum DaemonVersion {
    static let current = "0.1.0"
}
