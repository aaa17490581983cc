/// What strangers may ask of the person here, kept apart for each kind.
package struct Strangers: Sendable {
    /// Places of one kind, and how often they may be asked for.
    package struct Asking: Sendable {
        package var places: StrangersPlaces
        package var rate = AskingRate()
    }

    package var invitations: Asking
    package var comparisons = Asking(
        places: StrangersPlaces(limit: EarshotLimits.comparisonRequests, perAddress: EarshotLimits.comparisonRequestsPerAddress))

    /// So many strangers at one address may have invitations waiting here.
    package init(invitationsPerAddress: Int, invitationBurst: Int = EarshotLimits.askingBurst) {
        self.invitations = Asking(
            places: StrangersPlaces(limit: EarshotLimits.pendingInvitations, perAddress: invitationsPerAddress),
            rate: AskingRate(burst: invitationBurst))
    }
}
