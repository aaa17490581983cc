internal import Earshot
internal import EarshotWire
internal import FoundationEssentials

/// The daemon's metrics and their names. Each label has all its possible values from the start, so that a metric does not first appear with
/// its first event.
struct DaemonMetrics: Sendable {
    let status: NodeStatus
    let node: NodeMetrics
    let readers: (readers: Int, dropped: UInt64)
    let requests: [Int: UInt64]
    let version: String
    let now: Date
    var process: ProcessFigures?

    /// All metrics in Prometheus' text format.
    var text: String {
        var text = PrometheusText()
        self.addProcess(to: &text)
        if let process = self.process { Self.add(process, to: &text) }
        self.addPeers(to: &text)
        self.addMessages(to: &text)
        self.addResources(to: &text)
        self.addAPI(to: &text)
        return text.text
    }

    private func addProcess(to text: inout PrometheusText) {
        text.add(
            "earshot_build_info", .gauge, "The daemon's version.",
            samples: [([("version", self.version)], 1)])
        text.add(
            "earshot_uptime_seconds", .gauge, "Time since this run of the daemon began.",
            seconds: max(0, self.now.timeIntervalSince(self.status.startedAt)))
        text.add(
            "earshot_discovery_up", .gauge, "Whether discovery runs, by the backend in use.",
            samples: [([("backend", self.status.discovery.backend.rawValue)], self.status.discovery.state == .running ? 1 : 0)])
    }

    /// The process's metrics, under the names that all exporters use.
    private static func add(_ process: ProcessFigures, to text: inout PrometheusText) {
        text.add("process_cpu_seconds_total", .counter, "User and system CPU time.", seconds: process.cpuSeconds)
        text.add("process_resident_memory_bytes", .gauge, "Resident memory.", process.residentMemory)
        text.add("process_virtual_memory_bytes", .gauge, "Virtual memory.", process.virtualMemory)
        text.add("process_open_fds", .gauge, "Open file descriptors.", process.openDescriptors)
        if let limit = process.descriptorLimit { text.add("process_max_fds", .gauge, "The most file descriptors.", limit) }
        text.add("process_threads", .gauge, "Threads.", process.threads)
        text.add(
            "process_start_time_seconds", .gauge, "When the process started, since the Unix epoch.",
            seconds: process.startedAt.timeIntervalSince1970)
    }

    private func addPeers(to text: inout PrometheusText) {
        let counts = self.node.counts
        text.add("earshot_peers", .gauge, "Peers, nearby or away.", counts.peers)
        text.add("earshot_sessions", .gauge, "Sessions, whether their peers are connected or not.", counts.sessions)
        text.add("earshot_groups", .gauge, "Groups that this machine is in, or is joining.", self.node.groups)
        text.add(
            "earshot_group_members", .gauge, "Other members of these, by whether they can be talked to; one of two groups counts twice.",
            samples: Group.Member.State.allCases.map { ([("state", $0.rawValue)], self.node.groupMembers[$0] ?? 0) })
        text.add(
            "earshot_connections", .gauge, "Connections to peers, by what protects them.",
            samples: Protection.allCases.map { ([("protection", $0.rawValue)], self.node.connections[$0] ?? 0) })
        text.add(
            "earshot_handshake_failures_total", .counter, "Connections that did not come to a proven peer, by why.",
            samples: EarshotError.Code.allCases.filter { Self.handshakeCodes.contains($0) || self.node.handshakeFailures[$0] != nil }
                .map { ([("code", $0.rawValue)], self.node.handshakeFailures[$0] ?? 0) })
        let dropped = self.node.droppedAnnouncements
        text.add(
            "earshot_localsend_announcements_dropped_total", .counter, "Announcements of LocalSend devices that were dropped, by why.",
            samples: [([("reason", "rate")], UInt64(dropped.excess)), ([("reason", "malformed")], UInt64(dropped.malformed))])
        text.add(
            "earshot_invitations_pending", .gauge, "Invitations that wait for a decision.",
            samples: Direction.allCases.map { ([("direction", $0.rawValue)], self.node.pendingInvitations[$0] ?? 0) })
        text.add(
            "earshot_invitations_received_total", .counter, "Invitations that came in.", self.node.counters.invitationsReceived)
        text.add(
            "earshot_invitations_resolved_total", .counter, "Invitations of either direction by how they ended.",
            samples: Invitation.State.allCases.filter { $0 != .pending }
                .map { ([("state", $0.rawValue)], self.node.counters.invitationsResolved[$0] ?? 0) })
    }

    /// The reasons that end a handshake, shown from the start; other reasons are shown after they have occurred.
    private static let handshakeCodes: Set<EarshotError.Code> = [
        .identityMismatch, .encryptionMismatch, .downgradeDetected, .versionUnsupported, .serviceMismatch, .protocolViolation, .timedOut,
        .notConnected,
    ]

    private func addMessages(to text: inout PrometheusText) {
        let counters = self.node.counters
        text.add("earshot_messages_received_total", .counter, "Messages that came in.", counters.messagesReceived)
        text.add("earshot_message_received_bytes_total", .counter, "Bytes of their bodies.", counters.messageBytesReceived)
        text.add(
            "earshot_message_statuses_total", .counter, "What became of outgoing messages at their recipients: changes to each status.",
            samples: Message.Status.allCases.map { ([("status", $0.rawValue)], counters.messageStatuses[$0] ?? 0) })
        text.add("earshot_messages_unread", .gauge, "Unread messages in the inbox.", self.node.counts.unreadMessages)
        text.add(
            "earshot_messages_waiting", .gauge, "Messages on disk that wait for peers that are away.", self.node.counts.waitingMessages)
        text.add("earshot_messages_queued", .gauge, "Outgoing messages that are not acknowledged yet.", self.node.queuedMessages)
        text.add("earshot_message_queued_bytes", .gauge, "What they take in memory.", self.node.queuedBytes)
        text.add("earshot_store_queue", .gauge, "Changes that wait for the disk.", self.node.queuedStoreWork)
    }

    private func addResources(to text: inout PrometheusText) {
        let counters = self.node.counters
        text.add(
            "earshot_transfers", .gauge, "Resources on their way.",
            samples: Direction.allCases.map { ([("direction", $0.rawValue)], self.node.transfers[$0] ?? 0) })
        text.add(
            "earshot_resources_finished_total", .counter, "Resources that ended, by how.",
            samples: Direction.allCases.flatMap { direction in
                Resource.State.allCases.filter(\.isFinal).map { state in
                    (
                        [("direction", direction.rawValue), ("state", state.rawValue)],
                        counters.resourcesFinished[NodeMetrics.ResourceOutcome(direction: direction, state: state)] ?? 0
                    )
                }
            })
        text.add(
            "earshot_resource_bytes_total", .counter, "Bytes that they had moved by then.",
            samples: Direction.allCases.map { ([("direction", $0.rawValue)], counters.resourceBytes[$0] ?? 0) })
        text.add("earshot_spool_bytes", .gauge, "Bytes that the spool holds or has reserved.", self.node.spoolBytes)
        text.add("earshot_spool_quota_bytes", .gauge, "The most that the spool may hold.", self.node.spoolQuota)
    }

    private func addAPI(to text: inout PrometheusText) {
        text.add("earshot_events_total", .counter, "Events told to readers.", self.node.counters.events)
        text.add("earshot_event_readers", .gauge, "Readers of the event stream.", self.readers.readers)
        text.add("earshot_event_readers_dropped_total", .counter, "Readers that were dropped as they had stalled.", self.readers.dropped)
        text.add(
            "earshot_api_requests_total", .counter, "Requests to the control API, by the status of the answer.",
            samples: self.requests.sorted { $0.key < $1.key }.map { ([("status", String($0.key))], $0.value) })
    }
}
