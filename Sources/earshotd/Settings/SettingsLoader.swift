internal import Earshot
internal import EarshotSafety
internal import FoundationEssentials
internal import Glibc

/// Loads the settings from flags, environment, files and unit.
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

    /// The loaded settings and the places of the daemon's files.
    struct Result: Sendable {
        let settings: Settings
        /// The settings that are set, with the place of each value, in the order of `Config/earshotd.conf`.
        let sources: [SettingSource]
        /// The path of the settings file, whether or not it exists; `nil` if neither a flag nor the environment determines it.
        let configuration: String?
        /// The files that were read, in order: the settings file, if it exists, then its drop-ins.
        let files: [String]
        let stateDirectory: String
        /// The service's state directory if the settings are the service's. A user who checks them may have another state directory.
        let serviceState: String?
        let socket: String
        /// The directory that systemd made for the socket.
        let runtimeDirectory: String?
        /// Environment variables that look like misspelt settings.
        let unknownVariables: [SettingsError]

        /// The lines that `--check-config` prints for valid settings: the files, then each value with its place. If no file exists, the path
        /// of the missing file is printed, so that the user notices a check of the wrong place.
        var report: [String] {
            let none =
                self.configuration.map { "\($0.escapedForDisplay): not present, using defaults" } ?? "no settings file, using defaults"
            let files = self.files.map { "\($0.escapedForDisplay): ok" }
            return (files.isEmpty ? [none] : files) + self.sources.map(\.description)
        }

        /// Checks the settings for `--check-config` and a reload. A start waits for some of what is checked here.
        func check() throws(SettingsError) {
            try self.checkReceivePlace()
            try self.settings.check()
        }

        /// Checks that received files cannot replace the daemon's own.
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
    /// A file that is read in place of the drop-in of `earshot config`, to check it before it gets that name.
    var candidate: String?

    /// Makes a loader for this process.
    init(flags: Flags) {
        self.init(flags: flags, environment: ProcessInfo.processInfo.environment, isRoot: geteuid() == 0, hostName: Self.systemHostName())
    }

    /// Returns the same loader with the current host name, which may have changed.
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

    /// Reads all layers, or reports the first error. Without `placed`, a missing place for the socket or the state is no error: the user who
    /// checks settings may have none.
    func load(placed: Bool = true) throws(SettingsError) -> Result {
        let places = Places(environment: self.environment, isRoot: self.isRoot, service: self.service)
        var layers = SettingLayers()
        var flags = self.flags
        flags.socket = try flags.socket.map { path throws(SettingsError) in try Self.fromHere(path) }
        layers.readFlags(flags)
        layers.readEnvironment(self.environment)
        var files: [String] = []
        let place = try places.configuration(flag: self.flags.config, stateFlag: self.flags.stateDirectory)
        if let place {
            if let bytes = try SettingsFiles.read(place.path, mustExist: place.mustExist) {
                try layers.readFile(INIFile(bytes: bytes, path: place.path), path: place.path)
                files.append(place.path)
            }
            for path in try SettingsFiles.dropIns(of: place.path, including: self.candidate == nil ? nil : SettingsFiles.commandDropIn) {
                let isCandidate = self.candidate != nil && path.hasSuffix("/\(SettingsFiles.commandDropIn)")
                guard let bytes = try SettingsFiles.read(isCandidate ? self.candidate ?? path : path, mustExist: true) else { continue }
                try layers.readFile(INIFile(bytes: bytes, path: path), path: path)
                files.append(path)
            }
        }
        var settings = try Settings(layers, hostName: self.hostName)
        settings.markFiles()
        let stateDirectory = try Self.place(placed) { () throws(SettingsError) in
            try Self.fromHere(try places.stateDirectory(flag: self.flags.stateDirectory))
        }
        settings.node.stateDirectory = stateDirectory
        return Result(
            settings: settings, sources: layers.sources, configuration: place?.path, files: files, stateDirectory: stateDirectory,
            serviceState: place?.path == self.service.configuration ? self.service.state : nil,
            socket: try Self.place(placed) { () throws(SettingsError) in try places.socket(setting: settings.socket) },
            runtimeDirectory: places.runtimeDirectory, unknownVariables: UnknownVariables.faults(in: self.environment))
    }

    /// Returns a place. If none is needed and only this user has none, the path is empty; an invalid setting is still an error.
    private static func place(_ isNeeded: Bool, _ find: () throws(SettingsError) -> String) throws(SettingsError) -> String {
        do {
            return try find()
        } catch {
            guard !isNeeded, error.isUsage, error.origin == nil else { throw error }
            return ""
        }
    }

    /// Returns a path of the settings' files for other processes, or the path as it is if the working directory is gone.
    static func absolute(_ path: String) -> String { (try? self.fromHere(path)) ?? path }

    /// Returns a path as typed, resolved against the working directory.
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
