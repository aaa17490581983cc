import Earshot
import Logging

/// The discovery of peers: one browser, and for each instance a resolver and a browser of its host's addresses, as many as the schedule
/// allows.
extension AvahiEngine {
    func maintainBrowsing(now: Duration) {
        guard case .up = self.connection, let type = self.plan.serviceType else { return }
        switch self.browsing {
        case .running: return
        case .failed(_, let retryAt) where retryAt > now: return
        case .idle, .failed: break
        }
        do {
            try self.link.browse(type: "_\(type)._tcp")
            self.browsing = .running
        } catch {
            self.browsing = .failed(error.message, retryAt: now + error.pause)
        }
    }

    func appeared(_ key: Sighting.Key, isOwn: Bool, now: Duration) {
        if isOwn {
            self.own.insert(key)
            return
        }
        switch self.schedule.appeared(key, now: now) {
        case .open: self.openResolver(key, now: now)
        case .wait: self.turnAt = self.schedule.nextTurn(now: now)
        case .known: break
        case .refuse(let isFirst):
            guard isFirst else { break }
            self.logger.warning("more than \(DiscoveryLimits.sightings) instances are advertised on this network, the rest is ignored")
        }
    }

    func disappeared(_ key: Sighting.Key) {
        guard self.own.remove(key) == nil else { return }
        self.resolveAnewAt[key] = nil
        if self.schedule.disappeared(key) == .close { self.closeResolver(key) }
        self.hosts[key] = nil
        if self.sightings.removeValue(forKey: key) != nil { self.emit(.lost(self.backend, key)) }
    }

    private func openResolver(_ key: Sighting.Key, now: Duration) {
        guard let type = self.plan.serviceType else { return }
        do {
            try self.link.openResolver(key, type: "_\(type)._tcp")
        } catch {
            _ = self.schedule.failed(key, now: now, wasOpen: false)
            self.turnAt = self.schedule.nextTurn(now: now)
        }
    }

    func resolved(_ key: Sighting.Key, _ instance: ResolvedInstance, now: Duration) {
        guard self.schedule.resolved(key, now: now) else { return }
        // The interface has gone in the meantime, and its instances will be reported as gone. Or it could not be read.
        guard let interface = self.interfaces.interface(key.interfaceIndex, now: now) else {
            if !self.interfaces.isCurrent { self.resolveAnewAt[key] = now + DiscoveryLimits.resolveAnew }
            return
        }
        self.follow(key, instance)
        let sighting = Sighting(
            key: key, interfaceName: interface.name, isLoopback: interface.isLoopback,
            addresses: self.hosts[key]?.addresses ?? [instance.address], port: instance.port, txt: instance.txt)
        let previous = self.sightings.updateValue(sighting, forKey: key)
        guard previous != sighting else { return }
        if let previous, previous.txt != sighting.txt, self.resolveAnewAt[key] == nil {
            self.resolveAnewAt[key] = now + DiscoveryLimits.resolveAnew
        }
        self.emit(.found(self.backend, sighting))
    }

    func resolvingFailed(_ key: Sighting.Key, now: Duration) {
        guard self.schedule.failed(key, now: now) else { return }
        self.closeResolver(key)
        // Avahi remembers a name for 75 minutes (RFC 6762 section 10), but its address and TXT record for two. The machine has gone without
        // a goodbye.
        guard self.schedule.silences(of: key) >= DiscoveryLimits.resolverFailures, self.sightings.removeValue(forKey: key) != nil else {
            return
        }
        self.hosts[key] = nil
        self.emit(.lost(self.backend, key))
    }

    func closeResolver(_ key: Sighting.Key) {
        self.link.closeResolver(key)
        self.link.closeAddresses(key)
        self.hosts[key]?.isFollowed = false
    }

    /// Starts following all addresses of the instance's host.
    private func follow(_ key: Sighting.Key, _ instance: ResolvedInstance) {
        if self.hosts[key]?.name == instance.host, self.hosts[key]?.isFollowed == true {
            self.hosts[key]?.resolved = instance.address
            return
        }
        // A host that cannot be followed has only the resolved address.
        let isFollowed = (try? self.link.openAddresses(key, host: instance.host)) != nil
        self.hosts[key] = InstanceHost(name: instance.host, resolved: instance.address, isFollowed: isFollowed)
    }

    func addressChanged(_ key: Sighting.Key, _ address: String, isPresent: Bool) {
        self.hosts[key]?.note(address, isPresent: isPresent)
        guard let sighting = self.sightings[key], let addresses = self.hosts[key]?.addresses, addresses != sighting.addresses
        else { return }
        let changed = Sighting(
            key: key, interfaceName: sighting.interfaceName, isLoopback: sighting.isLoopback, addresses: addresses, port: sighting.port,
            txt: sighting.txt)
        self.sightings[key] = changed
        self.emit(.found(self.backend, changed))
    }

    func resolveAnew(now: Duration) {
        guard case .up = self.connection, !self.resolveAnewAt.isEmpty else { return }
        for (key, due) in self.resolveAnewAt where due <= now {
            self.resolveAnewAt[key] = nil
            if self.schedule.isOpen(key) { self.openResolver(key, now: now) }
        }
    }

    func rotateResolvers(now: Duration) {
        guard case .up = self.connection, let turnAt = self.turnAt, turnAt <= now else { return }
        let (close, open) = self.schedule.rotate(now: now)
        for key in close { self.closeResolver(key) }
        for key in open { self.openResolver(key, now: now) }
        self.turnAt = self.schedule.nextTurn(now: now)
    }
}
