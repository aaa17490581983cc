internal import Earshot
internal import EarshotDiscovery
internal import EarshotWaiting
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

/// Reloads the settings on SIGHUP and on requests of the control API. Settings that cannot change while the daemon runs are named in the
/// log.
///
/// A reload applies all settings or none: an error keeps the previous ones. Requests that arrive during a reload cause one more reload.
struct ReloadService: Service {
    /// The loader of the start, with its flags, environment and places.
    let loader: SettingsLoader
    let settings: RunningSettings
    let node: Node
    let manager: ServiceManager
    let level: LogLevel
    /// Ends when the daemon serves. An earlier reload would report to systemd that the daemon is ready.
    let ready: AsyncStream<Never>
    let logger: Logger

    func run() async throws {
        let signals = await UnixSignalsSequence(trapping: .sighup)
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await _ in signals { self.settings.wake() }
                    self.settings.end()
                }
                for await _ in self.ready {}
                await self.serve()
            }
        }
    }

    /// Serves the requests until the task is cancelled.
    func serve() async {
        var running = self.settings.started.settings
        for await _ in self.settings.wakes {
            let requests = self.settings.takeRequests()
            let outcome = await self.reload(&running)
            for request in requests { request.settle(outcome) }
        }
        self.settings.end()
    }

    private func reload(_ running: inout Settings) async -> RunningSettings.Outcome {
        self.manager.reloading()
        defer { self.manager.ready() }
        do throws(SettingsError) {
            let loaded = try self.loader.anew().load()
            try loaded.check()
            return .success(try await self.apply(loaded, to: &running))
        } catch {
            self.logger.error("the settings were not reloaded, keeping the previous settings: \(error)")
            return .failure(EarshotError(.conflict, "\(error)"))
        }
    }

    private func apply(_ loaded: SettingsLoader.Result, to running: inout Settings) async throws(SettingsError) -> SettingsReload {
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
            throw SettingsError(error.message)
        }
        self.level.value = next.logLevel
        running = next
        self.settings.adopt(loaded)
        let reload = SettingsReload(changed: changes.changed, needsRestart: changes.needsRestart)
        // Published when all of the settings apply.
        await self.node.publish(program: reload)
        let changed = changes.changed.joined(separator: " ")
        let waiting = changes.needsRestart.joined(separator: " ")
        self.logger.notice("settings reloaded", metadata: ["changed": "\(changed)", "needs_restart": "\(waiting)"])
        return reload
    }
}
