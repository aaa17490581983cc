internal import Earshot
internal import EarshotDiscovery
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// Reads the settings again on SIGHUP: what can change while the daemon runs does, and what cannot is named.
///
/// All or nothing: settings with an error anywhere leave everything as it is. Signals that come while one reload is under way are
/// answered by one more.
struct ReloadService: Service {
    /// The flags, environment and places of the start.
    let loader: SettingsLoader
    /// What the daemon was started with.
    let started: Settings
    let node: Node
    let manager: ServiceManager
    let level: LogLevel
    /// Ends once the daemon serves: before that systemd is not told that it is ready.
    let ready: AsyncStream<Never>
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        // Holds one: however many come, the files are read once more.
        let (wakes, waker) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await _ in signals { waker.yield() }
                    waker.finish()
                }
                for await _ in self.ready {}
                var running = self.started
                for await _ in wakes { await self.reload(&running) }
            }
        }
    }

    private func reload(_ running: inout Settings) async {
        self.manager.reloading()
        do throws(SettingsError) {
            let loaded = try self.loader.anew().load()
            try loaded.check()
            await self.apply(loaded, to: &running)
        } catch {
            self.logger.error("the settings were not reloaded, the ones before stay: \(error)")
        }
        self.manager.ready()
    }

    private func apply(_ loaded: SettingsLoader.Result, to running: inout Settings) async {
        let changes = loaded.settings.changes(from: running)
        let next = loaded.settings.applied(to: running)
        let backend = next.backend
        let discovery = await self.node.status().discovery.backend
        let embeddedRuns = running.backend == .auto && backend == .auto && discovery == .embedded
        do throws(EarshotError) {
            let configuration = Node.Configuration(next, stateDirectory: loaded.stateDirectory)
            try await self.node.apply(
                configuration, changed: changes.changed, needsRestart: changes.needsRestart, restartsDiscovery: backend != running.backend
            ) { backend.makeDiscovery(logger: Logger(label: "discovery"), startsEmbedded: embeddedRuns) }
        } catch {
            self.logger.error("the settings were not reloaded, the ones before stay: \(error.message)")
            return
        }
        self.level.value = next.logLevel
        running = next
        let changed = changes.changed.joined(separator: " ")
        let waiting = changes.needsRestart.joined(separator: " ")
        self.logger.notice("settings reloaded", metadata: ["changed": "\(changed)", "needs_restart": "\(waiting)"])
    }
}
