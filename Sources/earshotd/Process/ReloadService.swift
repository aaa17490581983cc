internal import Earshot
internal import EarshotDiscovery
internal import Logging
internal import ServiceLifecycle
internal import UnixSignals

/// The settings that a reload has changed, for the event `settings.reloaded`.
struct SettingsReload: Sendable {
    /// The keys of the settings with a new value, such as `peer.name`.
    let changed: [String]
    /// The keys among them that apply only after the next start.
    let needsRestart: [String]
}

/// Reloads the settings on SIGHUP. Settings that cannot change while the daemon runs are named in the log.
///
/// A reload applies all settings or none: an error keeps the previous ones. Signals that arrive during a reload cause one more reload.
struct ReloadService: Service {
    /// The loader of the start, with its flags, environment and places.
    let loader: SettingsLoader
    /// The settings that the daemon was started with.
    let started: Settings
    let node: Node
    let manager: ServiceManager
    let level: LogLevel
    /// Ends when the daemon serves. An earlier reload would report to systemd that the daemon is ready.
    let ready: AsyncStream<Never>
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        // Holds one signal: any number of signals leads to one more reload.
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
            self.logger.error("the settings were not reloaded, keeping the previous settings: \(error)")
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
            try await self.node.apply(
                next.node, restartsDiscovery: backend != running.backend
            ) { backend.makeDiscovery(logger: Logger(label: "discovery"), startsEmbedded: embeddedRuns) }
        } catch {
            self.logger.error("the settings were not reloaded, keeping the previous settings: \(error.message)")
            return
        }
        self.level.value = next.logLevel
        running = next
        // Published when all of the settings apply.
        await self.node.publish(program: SettingsReload(changed: changes.changed, needsRestart: changes.needsRestart))
        let changed = changes.changed.joined(separator: " ")
        let waiting = changes.needsRestart.joined(separator: " ")
        self.logger.notice("settings reloaded", metadata: ["changed": "\(changed)", "needs_restart": "\(waiting)"])
    }
}
