/// The limits on requests of strangers that a user here has to answer, separate for each kind.
package struct Strangers: Sendable {
    /// The places for requests of one kind, and the rate limit on them.
    package struct Asking: Sendable {
        package var places: StrangersPlaces
        package var rate = AskingRate()
    }

    package var invitations: Asking
    package var comparisons = Asking(
        places: StrangersPlaces(limit: EarshotLimits.comparisonRequests, perAddress: EarshotLimits.comparisonRequestsPerAddress))

    /// Creates the limits. `invitationsPerAddress` strangers at one address may have pending invitations here.
    package init(invitationsPerAddress: Int, invitationBurst: Int = EarshotLimits.askingBurst) {
        self.invitations = Asking(
            places: StrangersPlaces(limit: EarshotLimits.pendingInvitations, perAddress: invitationsPerAddress),
            rate: AskingRate(burst: invitationBurst))
    }
}
