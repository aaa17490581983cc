import CAvahi
import Glibc

/// A poll loop for libavahi-core that inspects each packet before the library does, and discards those that could harm it
/// (``MulticastPacket``).
///
/// The library reads one packet per call, on the single thread of its loop, so it reads exactly the packet that was inspected.
final class ScreenedPoll {
    /// The poll API for the library. It holds this object, without retaining it.
    let poll: UnsafeMutablePointer<AvahiPoll>
    private let loop: UnsafePointer<AvahiPoll>
    private var watches: [Watch] = []
    private let passedOver: () -> Void
    private var buffer = [UInt8](repeating: 0, count: DiscoveryLimits.packetBytes)

    /// Creates a screen for a loop. Keep it as long as any object that was made with it. `passedOver` is called for each discarded packet.
    init(_ loop: UnsafePointer<AvahiPoll>, passedOver: @escaping () -> Void) {
        self.loop = loop
        self.passedOver = passedOver
        self.poll = .allocate(capacity: 1)
        self.poll.initialize(to: loop.pointee)
        self.poll.pointee.userdata = Unmanaged.passUnretained(self).toOpaque()
        self.poll.pointee.watch_new = { api, descriptor, events, callback, context in
            guard let screen = ScreenedPoll.screen(api), let callback else { return nil }
            return screen.watch(descriptor, events, callback, context)
        }
        self.poll.pointee.timeout_new = { api, time, callback, context in
            guard let loop = ScreenedPoll.screen(api)?.loop else { return nil }
            return loop.pointee.timeout_new(loop, time, callback, context)
        }
    }

    deinit {
        self.poll.deinitialize(count: 1)
        self.poll.deallocate()
    }

    private static func screen(_ api: UnsafePointer<AvahiPoll>?) -> ScreenedPoll? {
        api?.pointee.userdata.map { Unmanaged<ScreenedPoll>.fromOpaque($0).takeUnretainedValue() }
    }

    /// A socket of the library, with the callback for received data.
    private final class Watch {
        unowned let screen: ScreenedPoll
        let callback: AvahiWatchCallback
        let context: UnsafeMutableRawPointer?

        init(_ screen: ScreenedPoll, _ callback: @escaping AvahiWatchCallback, _ context: UnsafeMutableRawPointer?) {
            self.screen = screen
            self.callback = callback
            self.context = context
        }
    }

    private func watch(
        _ descriptor: CInt, _ events: AvahiWatchEvent, _ callback: @escaping AvahiWatchCallback, _ context: UnsafeMutableRawPointer?
    ) -> OpaquePointer? {
        // The kernel reports changes of interfaces by netlink, which needs no screening.
        guard Self.isOfNetwork(descriptor) else { return self.loop.pointee.watch_new(self.loop, descriptor, events, callback, context) }
        let watch = Watch(self, callback, context)
        self.watches.append(watch)
        return self.loop.pointee.watch_new(
            self.loop, descriptor, events,
            { handle, descriptor, events, context in
                guard let context else { return }
                let watch = Unmanaged<Watch>.fromOpaque(context).takeUnretainedValue()
                if watch.screen.passes(descriptor, events) { watch.callback(handle, descriptor, events, watch.context) }
            }, Unmanaged.passUnretained(watch).toOpaque())
    }

    private static func isOfNetwork(_ descriptor: CInt) -> Bool {
        var domain: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        // If the kernel does not tell, the socket is screened.
        guard getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 else { return true }
        return domain == AF_INET || domain == AF_INET6
    }

    /// Whether there is a packet that the library may read. A harmful packet is discarded.
    private func passes(_ descriptor: CInt, _ events: AvahiWatchEvent) -> Bool {
        // Without a packet there may be an error of an earlier one, at which the library would end the process. Peeking clears it.
        let count = recv(descriptor, &self.buffer, self.buffer.count, CInt(MSG_PEEK | MSG_DONTWAIT))
        guard count >= 0 else { return false }
        if MulticastPacket.isHarmless(self.buffer[..<count]) { return events.rawValue & AVAHI_WATCH_IN.rawValue != 0 }
        _ = recv(descriptor, &self.buffer, self.buffer.count, CInt(MSG_DONTWAIT))
        self.passedOver()
        return false
    }
}
