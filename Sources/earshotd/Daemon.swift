internal import Earshot
internal import EarshotClient
internal import EarshotDiscovery
internal import EarshotLocalSend
internal import EarshotSafety
internal import EarshotWire
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import NIOPosix
internal import ServiceLifecycle
internal import UnixSignals

/// Why the daemon does not run.
struct StartError: Error, Sendable, CustomStringConvertible {
    /// One lower-case sentence.
    let description: String
    /// 78 for an error in the settings, or a state that only a later version can read; 1 otherwise.
    let exitCode: Int32

    /// Returns the error of a failed write, by its errno.
    static func cannotWrite(_ path: String, _ code: CInt, exitCode: Int32) -> StartError {
        StartError(description: "cannot write \(path.escapedForDisplay): \(FileError.reason(code))", exitCode: exitCode)
    }
}

/// The composition root: makes the parts of the daemon from the settings and connects them.
struct Daemon: Sendable {
    private let loaded: SettingsLoader.Result
    private let loader: SettingsLoader
    private let policy: CallerPolicy
    /// Why received files cannot be moved to their directory yet.
    private let awaited: SettingsError?

    /// Checks what can be checked without side effects. `loader` serves later reloads.
    ///
    /// A group or a directory that may appear later is no error in the settings, because systemd does not restart a service that exits with
    /// 78. For a missing group, the daemon exits with 1 and is restarted. It waits for the directory of received files while it runs.
    init(_ loaded: SettingsLoader.Result, loader: SettingsLoader) throws {
        self.loaded = loaded
        self.loader = loader
        try loaded.checkReceivePlace()
        self.awaited = try loaded.settings.awaitedReceiveDirectory()
        try loaded.settings.checkIdentity()
        do throws(SettingsError) {
            self.policy = CallerPolicy(owner: geteuid(), group: try loaded.settings.groupID())
        } catch {
            throw StartError(
                description: "\(error); it may be in a directory of users (sssd, LDAP) that is not available yet: the service is restarted "
                    + "until the group exists", exitCode: 1)
        }
    }

    /// Runs until SIGTERM or SIGINT.
    func run() async throws(StartError) {
        do throws(ProcessLimitError) {
            try ProcessSetup.apply()
        } catch {
            throw StartError(description: error.description, exitCode: 1)
        }
        let environment = ProcessInfo.processInfo.environment
        let level = LogLevel(self.loaded.settings.logLevel)
        let logger = self.makeLogger(environment, level)
        for fault in self.loaded.unknownVariables { logger.warning("\(fault)") }
        let manager = ServiceManager(environment: environment)
        let state = StateVersion(directory: self.loaded.stateDirectory)
        do {
            // Both are held as long as the process runs, so that a second daemon cannot take them.
            let lock = try StateLock(directory: self.loaded.stateDirectory)
            let socket = try ControlSocket.claim(self.loaded.socket, ownDirectory: self.loaded.runtimeDirectory)
            self.confine(beside: socket, logger)
            ProcessSetup.makeThreads()
            let node = try await self.makeNode(logger)
            let (ready, announcer) = AsyncStream<Never>.makeStream()
            try await node.start()
            self.note(in: state, logger)
            let settings = RunningSettings(self.loaded)
            let server = ControlServer(
                socket: socket, policy: self.policy, api: ControlAPIServices(node: node, policy: self.policy, settings: settings),
                logger: logger,
                onReady: {
                    await self.announce(node, logger)
                    manager.ready()
                    announcer.finish()
                })
            // The watchdog and the deadline of a stop have their own thread, which no other part can block.
            let guardian = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
            let reload = ReloadService(
                loader: self.loader, settings: settings, node: node, manager: manager, level: level, ready: ready,
                logger: Logger(label: "settings"))
            var services: [any Service] = [NodeService(node: node), server, reload]
            if manager.isThere {
                services.append(StatusReporter(node: node, manager: manager))
                if let timeout = Watchdog.timeout(environment) {
                    services.append(
                        Watchdog(
                            on: guardian, parts: node.heartbeats + Watchdog.controlLoops, timeout: timeout,
                            logger: Logger(label: "watchdog")
                        ) { manager.feedWatchdog() })
                }
            }
            // The last service is the first to be stopped: its deadline runs while the others end.
            services.append(StopDeadline(serviceManager: manager, loop: guardian, logger: logger))
            try await self.serve(services, logger)
            logger.info("stopped")
            withExtendedLifetime(lock) {}
        } catch let error as EarshotError where error.code == .versionUnsupported {
            throw StartError(description: state.refusal(error.message, current: EarshotVersion.current), exitCode: 78)
        } catch let error as EarshotError {
            throw StartError(description: error.message, exitCode: error.code == .invalidParameter ? 78 : 1)
        } catch {
            throw StartError(description: "\(error)", exitCode: 1)
        }
    }

    private func serve(_ services: [any Service], _ logger: Logger) async throws {
        // The group logs each of its steps; only its warnings are of interest.
        var quietLogger = logger
        quietLogger.logLevel = max(.warning, logger.logLevel)
        var configuration = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [.sigterm, .sigint], logger: quietLogger)
        configuration.maximumGracefulShutdownDuration = .seconds(2)
        try await ServiceGroup(configuration: configuration).run()
    }

    private func makeLogger(_ environment: [String: String], _ level: LogLevel) -> Logger {
        let limiter = LogLimiter()
        let output = LogOutput(environment: environment)
        LoggingSystem.bootstrap { label in DaemonLog(label: label, level: level, output: output, limiter: limiter) }
        return Logger(label: DaemonLabel.name)
    }

    private func makeNode(_ logger: Logger) async throws -> Node {
        let settings = self.loaded.settings
        var configuration = settings.node
        configuration.isStateLocked = true
        let late = self.lateDirectory(logger)
        if late != nil { configuration.receiveDirectory = nil }
        let node = try await Node(
            configuration: configuration, discovery: settings.backend.makeDiscovery(logger: Logger(label: "discovery")),
            devices: self.makeDeviceTransport(), logger: logger)
        if let late { await node.awaitReceiveDirectory(late) }
        return node
    }

    /// Makes the transport of LocalSend, which the node starts once the settings enable LocalSend. Port 0 is any free TCP port: the UDP port
    /// is the same for all devices.
    private func makeDeviceTransport() -> LocalSendTransport {
        let port = self.loaded.settings.node.localSend.port
        return LocalSendTransport(
            .init(
                port: port, multicastPort: port == 0 ? LocalSendTransport.usualPort : port, stateDirectory: self.loaded.stateDirectory),
            logger: Logger(label: "localsend"))
    }

    /// Returns the directory for received files if it is not available yet, for example because its disk is mounted later. The node opens the
    /// directory for each file, and uses it as soon as it is available.
    private func lateDirectory(_ logger: Logger) -> String? {
        guard let awaited = self.awaited else { return nil }
        logger.warning("\(awaited); until then, received files stay in the spool")
        return self.loaded.settings.node.receiveDirectory
    }

    /// Has the kernel restrict the daemon to changing files in its state directory and making its socket. Threads that may reach one more
    /// directory move received files there. Called before a second thread exists, because the restriction applies to the calling thread.
    private func confine(beside socket: ControlSocket, _ logger: Logger) {
        do throws(FileError) {
            var places: [Confinement.Place] = [.changes(try SafeDirectory(path: self.loaded.stateDirectory))]
            // The owner may have replaced the spool by a link to another disk.
            if let spool = try? SafeDirectory(path: "\(self.loaded.stateDirectory)/spool") { places.append(.changes(spool)) }
            places.append(.sockets(try SafeDirectory(path: socket.directory)))
            if try !Confinement.confineProcess(to: places) {
                logger.info("no Landlock, the second line of defence for the file system: this kernel has none, or a container refuses it")
            }
        } catch {
            logger.warning("not confined to the state directory, which would be a second line of defence: \(error)")
        }
    }

    /// Records this version, so that an older release can explain why it refuses to start. Optional.
    private func note(in state: StateVersion, _ logger: Logger) {
        do throws(FileError) {
            try state.write(EarshotVersion.current)
        } catch {
            logger.warning("the state directory does not say that \(EarshotVersion.current) serves it: \(error)")
        }
    }

    private func announce(_ node: Node, _ logger: Logger) async {
        let status = await node.status()
        logger.info(
            "ready",
            metadata: [
                "version": "\(EarshotVersion.described)", "name": "\(status.name)", "id": "\(status.id)", "port": "\(status.port)",
                "socket": "\(self.loaded.socket)",
            ])
    }
}
