internal import EarshotSafety
internal import FoundationEssentials
internal import Glibc

/// Puts flags, environment, files and what a unit gives together.
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
        /// What is set, by whom, in the order of the example file.
        let sources: [SettingSource]
        /// The settings file that was looked for; `nil` where nothing says where it would be.
        let configuration: String?
        /// The files that were read, in order: the settings file, where there is one, then its drop-ins.
        let files: [String]
        let stateDirectory: String
        /// That of the service where the settings are the service's: who looks at them may have another.
        let serviceState: String?
        let socket: String
        /// The directory that systemd has made for the socket.
        let runtimeDirectory: String?
        /// Variables that look like settings and are none.
        let unknownVariables: [SettingsError]

        /// What `--check-config` says of settings that will do, line by line: the files, or where none is, so that nobody takes that for a word
        /// about another place; then what is set, and where.
        var report: [String] {
            let none = self.configuration.map { "no \($0.escapedForDisplay): ok" } ?? "no settings file: ok"
            let files = self.files.map { "\($0.escapedForDisplay): ok" }
            return (files.isEmpty ? [none] : files) + self.sources.map(\.description)
        }

        /// Whether the settings will do: what is asked before a start, and of a reload. A start itself awaits some of it.
        func check() throws(SettingsError) {
            try self.checkReceivePlace()
            try self.settings.check()
        }

        /// Whether received files would stay clear of the daemon's own.
        func checkReceivePlace() throws(SettingsError) {
            try self.settings.checkReceivePlace(beside: self.stateDirectory)
            if let state = self.serviceState { try self.settings.checkReceivePlace(beside: state) }
        }
    }

    let flags: Flags
    let environment: [String: String]
    let isRoot: Bool
    let hostName: String
    let service: Places.Service

    /// A loader for this process.
    init(flags: Flags) {
        self.init(flags: flags, environment: ProcessInfo.processInfo.environment, isRoot: geteuid() == 0, hostName: Self.systemHostName())
    }

    /// The same loader, with what may have changed since: the host name.
    func anew() -> SettingsLoader {
        SettingsLoader(
            flags: self.flags, environment: self.environment, isRoot: self.isRoot, hostName: Self.systemHostName(), service: self.service)
    }

    init(flags: Flags, environment: [String: String], isRoot: Bool, hostName: String, service: Places.Service = Places.Service()) {
        self.flags = flags
        self.environment = environment
        self.isRoot = isRoot
        self.hostName = hostName
        self.service = service
    }

    /// Reads everything, or says what is wrong with the first thing that is; without `placed`, what is to be looked at only, as the user who
    /// looks may have no place for a socket or a state.
    func load(placed: Bool = true) throws(SettingsError) -> Result {
        let places = Places(environment: self.environment, isRoot: self.isRoot, service: self.service)
        var layers = SettingLayers()
        layers.setFlag("name", .peerName, self.flags.name)
        layers.setFlag("service-type", .peerServiceType, self.flags.serviceType)
        layers.setFlag("port", .peerPort, self.flags.port)
        layers.setFlag("discovery", .discoveryBackend, self.flags.discovery)
        layers.setFlag("log-level", .logLevel, self.flags.logLevel)
        layers.setFlag("socket", .controlSocket, try self.flags.socket.map { path throws(SettingsError) in try Self.fromHere(path) })
        layers.readEnvironment(self.environment)
        var files: [String] = []
        let place = try places.configuration(flag: self.flags.config, stateFlag: self.flags.stateDirectory)
        if let place {
            if let bytes = try SettingsFiles.read(place.path, mustExist: place.mustExist) {
                try layers.readFile(INIFile(bytes: bytes, path: place.path), path: place.path)
                files.append(place.path)
            }
            for path in try SettingsFiles.dropIns(of: place.path) {
                guard let bytes = try SettingsFiles.read(path, mustExist: true) else { continue }
                try layers.readFile(INIFile(bytes: bytes, path: path), path: path)
                files.append(path)
            }
        }
        var settings = try Settings(layers, hostName: self.hostName)
        settings.markFiles()
        return Result(
            settings: settings, sources: layers.sources, configuration: place?.path, files: files,
            stateDirectory: try Self.place(placed) { () throws(SettingsError) in
                try Self.fromHere(try places.stateDirectory(flag: self.flags.stateDirectory))
            },
            serviceState: place?.path == self.service.configuration ? self.service.state : nil,
            socket: try Self.place(placed) { () throws(SettingsError) in try places.socket(setting: settings.socket) },
            runtimeDirectory: places.runtimeDirectory, unknownVariables: UnknownVariables.faults(in: self.environment))
    }

    /// A place; an empty path where none is needed and only its user has none, rather than the settings a wrong one.
    private static func place(_ isNeeded: Bool, _ find: () throws(SettingsError) -> String) throws(SettingsError) -> String {
        do {
            return try find()
        } catch {
            guard !isNeeded, error.isUsage, error.origin == nil else { throw error }
            return ""
        }
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
