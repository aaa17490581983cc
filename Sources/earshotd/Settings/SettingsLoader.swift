internal import EarshotSafety
internal import FoundationEssentials
internal import Glibc

/// Puts flags, environment and file together.
struct SettingsLoader: Sendable {
    /// The flags as they were typed.
    struct Flags: Sendable {
        var config: String?
        var stateDirectory: String?
        var socket: String?
        var name: String?
        var serviceType: String?
        var port: String?
        var discovery: String?
        var logLevel: String?
    }

    /// What came of it.
    struct Result: Sendable {
        let settings: Settings
        /// The file that was read; `nil` where there is none.
        let configuration: String?
        let stateDirectory: String
        let socket: String
    }

    let flags: Flags
    let environment: [String: String]
    let isRoot: Bool
    let hostName: String

    /// A loader for this process.
    init(flags: Flags) {
        self.init(flags: flags, environment: ProcessInfo.processInfo.environment, isRoot: geteuid() == 0, hostName: Self.systemHostName())
    }

    init(flags: Flags, environment: [String: String], isRoot: Bool, hostName: String) {
        self.flags = flags
        self.environment = environment
        self.isRoot = isRoot
        self.hostName = hostName
    }

    /// Reads everything, or says what is wrong with the first thing that is.
    func load() throws(SettingsError) -> Result {
        let places = Places(environment: self.environment, isRoot: self.isRoot)
        var layers = SettingLayers()
        layers.setFlag("name", .peerName, self.flags.name)
        layers.setFlag("service-type", .peerServiceType, self.flags.serviceType)
        layers.setFlag("port", .peerPort, self.flags.port)
        layers.setFlag("discovery", .discoveryBackend, self.flags.discovery)
        layers.setFlag("log-level", .logLevel, self.flags.logLevel)
        layers.setFlag("socket", .controlSocket, try self.flags.socket.map { path throws(SettingsError) in try Self.fromHere(path) })
        try layers.readEnvironment(self.environment)
        var read: String?
        if let place = try places.configuration(flag: self.flags.config), let bytes = try Self.read(place.path, mustExist: place.mustExist)
        {
            try layers.readFile(INIFile(bytes: bytes, path: place.path), path: place.path)
            read = place.path
        }
        let settings = try Settings(layers, hostName: self.hostName)
        return Result(
            settings: settings, configuration: read,
            stateDirectory: try Self.fromHere(try places.stateDirectory(flag: self.flags.stateDirectory)),
            socket: try places.socket(setting: settings.socket))
    }

    /// The whole file, up to one byte more than is allowed; `nil` where there is none and need not be.
    private static func read(_ path: String, mustExist: Bool) throws(SettingsError) -> [UInt8]? {
        let shown = path.escapedForDisplay
        guard !path.utf8.contains(0) else { throw SettingsError("\(shown) is not a path") }
        // Not blocking: a FIFO in the file's place must not hang the start.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if !mustExist && (code == ENOENT || code == ENOTDIR) { return nil }
            throw SettingsError("cannot read \(shown): \(String(cString: strerror(code)).lowercased())")
        }
        defer { close(descriptor) }
        guard FileStatus(descriptor: descriptor)?.kind == .regular || path == "/dev/null" else {
            throw SettingsError("\(shown) is not a regular file")
        }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while bytes.count <= INIFile.byteLimit {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw SettingsError("cannot read \(shown): \(String(cString: strerror(errno)).lowercased())") }
            if count == 0 { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return bytes
    }

    /// A path as typed, made absolute by the working directory.
    private static func fromHere(_ path: String) throws(SettingsError) -> String {
        guard !path.hasPrefix("/"), !path.isEmpty else { return path }
        guard let buffer = getcwd(nil, 0) else {
            throw SettingsError(
                "'\(path.escapedForDisplay)' is relative and the working directory is gone; give an absolute path", isUsage: true)
        }
        defer { free(buffer) }
        return String(cString: buffer) + "/" + path
    }

    private static func systemHostName() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
