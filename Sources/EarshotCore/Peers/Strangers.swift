/// What strangers may ask of the person here, kept apart for each kind.
package struct Strangers: Sendable {
    /// Places of one kind, and how often they may be asked for.
    package struct Asking: Sendable {
        package var places: StrangersPlaces
        package var rate = AskingRate()
    }

    package var invitations = Asking(
        places: StrangersPlaces(limit: EarshotLimits.pendingInvitations, perAddress: EarshotLimits.pendingInvitationsPerAddress))
    package var comparisons = Asking(
        places: StrangersPlaces(limit: EarshotLimits.comparisonRequests, perAddress: EarshotLimits.comparisonRequestsPerAddress))

    package init() {}
}
