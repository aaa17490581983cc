internal import Earshot
internal import EarshotClient
internal import EarshotDiscovery
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
    /// 78 where the settings are to blame, or a state that only a later version can read; 1 otherwise.
    let exitCode: Int32

    /// What could not be written, by its errno.
    static func cannotWrite(_ path: String, _ code: CInt, exitCode: Int32) -> StartError {
        StartError(description: "cannot write \(path.escapedForDisplay): \(FileError.reason(code))", exitCode: exitCode)
    }
}

/// The composition root: the parts of the daemon, made from the settings and tied together.
struct Daemon: Sendable {
    private let loaded: SettingsLoader.Result
    private let loader: SettingsLoader
    private let policy: CallerPolicy
    /// Why received files cannot be put where they are to go yet.
    private let awaited: SettingsError?

    /// Checks what can be checked without touching anything; `loader` reads the settings again.
    ///
    /// What may come by itself later is no fault of the settings, and to exit with 78 would keep a service down for good: a group is awaited
    /// by starting again, a directory for received files while the daemon runs.
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
                description: "\(error); it may be in a directory of users (sssd, LDAP) that is not up yet, and is awaited: a service is "
                    + "started again until it is there", exitCode: 1)
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
            // Both for as long as the process runs: a second daemon must find neither free.
            let lock = try StateLock(directory: self.loaded.stateDirectory)
            let socket = try ControlSocket.claim(self.loaded.socket, ownDirectory: self.loaded.runtimeDirectory)
            self.confine(beside: socket, logger)
            ProcessSetup.makeThreads()
            let node = try await self.makeNode(logger)
            let (ready, announcer) = AsyncStream<Never>.makeStream()
            try await node.start()
            self.note(in: state, logger)
            let server = ControlServer(
                socket: socket, policy: self.policy, api: ControlAPIServices(node: node, policy: self.policy), logger: logger,
                onReady: {
                    await self.announce(node, logger)
                    manager.ready()
                    announcer.finish()
                })
            // A thread of its own for what must go on whatever the others do: the watchdog and the deadline of a stop.
            let guardian = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
            let reload = ReloadService(
                loader: self.loader, started: self.loaded.settings, node: node, manager: manager, level: level, ready: ready,
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
            // The last one is told first that the daemon stops, and its time runs while the others end.
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
        // The group tells of its own steps; only what goes wrong is of interest.
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
        var configuration = Node.Configuration(settings, stateDirectory: self.loaded.stateDirectory)
        configuration.isStateLocked = true
        let late = self.lateDirectory(logger)
        if late != nil { configuration.receiveDirectory = nil }
        let node = try await Node(
            configuration: configuration, discovery: settings.backend.makeDiscovery(logger: Logger(label: "discovery")), logger: logger)
        if let late { await node.awaitReceiveDirectory(late) }
        return node
    }

    /// The directory for received files, where files cannot be put there yet: it may be one of a disk that is mounted later. It is opened anew
    /// for each file, so that it counts from when it is there.
    private func lateDirectory(_ logger: Logger) -> String? {
        guard let awaited = self.awaited else { return nil }
        logger.warning("\(awaited); until they can be, they stay in the spool")
        return self.loaded.settings.receiveDirectory?.text
    }

    /// From here on the kernel lets the daemon change files in its state directory, make its socket, and nothing else; received files are
    /// put into a directory of a person's by threads that may reach just that one. Before a second thread exists, which it would not hold for.
    private func confine(beside socket: ControlSocket, _ logger: Logger) {
        do throws(FileError) {
            var places: [Confinement.Place] = [.changes(try SafeDirectory(path: self.loaded.stateDirectory))]
            // It may lie on another disk, by a link that its owner made.
            if let spool = try? SafeDirectory(path: "\(self.loaded.stateDirectory)/spool") { places.append(.changes(spool)) }
            places.append(.sockets(try SafeDirectory(path: socket.directory)))
            if try !Confinement.confineProcess(to: places) {
                logger.info("no Landlock, the second line of defence for the file system: this kernel has none, or a container refuses it")
            }
        } catch {
            logger.warning("not confined to the state directory, which would be a second line of defence: \(error)")
        }
    }

    /// For a version that cannot read what this one leaves; it can do without.
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
