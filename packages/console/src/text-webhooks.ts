/** The texts of the screens for webhook endpoints, deliveries and events. */

import type { Delivery } from '@keyward/contract/management/webhooks'

export const webhookText = {
  webhooks: {
    title: 'Webhooks',
    intro: 'Keyward sends an HTTPS request to your endpoint when something happens, such as a revocation.',
    endpoint: 'Endpoint',
    new: 'New endpoint',
    created: 'Created the endpoint.',
    empty: 'No endpoints yet. Create one to learn about new machines, overused licenses and expiries without polling.',
    events: 'Events',
    url: 'URL',
    urlHint: 'It receives a POST request for each event. It must use https and a public address.',
    types: 'Events to send',
    everyEvent: 'Every event',
    chosenEvents: 'Only some events',
    chosen: 'Which events',
    chosenHint: 'A whole group such as license.*, or single types.',
    group: (name: string) => `every ${name} event`,
    description: 'Description',
    descriptionHint: 'The purpose of the endpoint, such as the name of the program.',
    edit: 'Change',
    saved: 'Saved the endpoint.',
    state: 'State',
    on: 'Receives events',
    failing: 'Failing',
    off: 'Turned off',
    disabled: 'Disabled by Keyward',
    failingSince: 'Failing since',
    turnOff: 'Turn off',
    turnOn: 'Turn on',
    turnedOff: 'Turned the endpoint off.',
    turnedOn: 'Turned the endpoint on. It receives events from now on.',
    offTitle: 'This endpoint is turned off',
    offHint: 'Keyward sends no events to it. Turn the endpoint on to receive events from then on.',
    disabledTitle: 'Keyward has disabled this endpoint',
    disabledHint: {
      GONE: 'The receiver responded with 410 Gone, which means that it wants no more events. If that was a mistake, correct the receiver. Then turn the endpoint on, and send the missed events again.',
      FAILING:
        'For five days, no attempt has succeeded. The deliveries below contain the responses. Correct the receiver. Then turn the endpoint on, and send the missed events again.',
    },
    failingTitle: 'This endpoint is failing',
    failingHint:
      'The latest attempts have failed. Keyward repeats them, and disables the endpoint after five days without success.',
    secret: 'Secret',
    secretTitle: 'Copy the secret now',
    secretHint:
      'The secret is not shown again. Your receiver verifies the signature of each request with this secret, so store it there.',
    secretKept: 'I have copied it',
    rotate: 'Replace the secret',
    rotateTitle: 'Replace the secret?',
    rotateHint:
      'Shows a new secret once. For 24 hours, Keyward signs each request with both secrets, so change your receiver within this time.',
    test: 'Send a test event',
    delete: 'Delete',
    deleteTitle: 'Delete this endpoint?',
    deleteHint:
      'Its deliveries are deleted too, and events that have not been delivered are no longer sent. A deletion cannot be undone.',
    deleted: 'Deleted the endpoint.',
    replay: 'Send missed events',
    replayTitle: 'Send events of a period again',
    replayHint:
      'Sends the events of the types of this endpoint again, also those that it has received before. A receiver skips them by their id.',
    replayPeriod: 'Period',
    replayPeriods: {
      '1': 'The last hour',
      '24': 'The last 24 hours',
      '168': 'The last 7 days',
      '720': 'The last 30 days',
    },
    replayed: (count: number) =>
      count === 0
        ? 'No event of this period has a type of this endpoint.'
        : count === 1
          ? 'Sending 1 event again.'
          : `Sending ${count.toLocaleString()} events again.`,
    replaySubmit: 'Send again',
  },

  deliveries: {
    title: 'Deliveries',
    empty: 'No deliveries in the last 30 days. Send a test event to try the endpoint.',
    emptyFiltered: 'No delivery matches these filters.',
    event: 'Event',
    open: (type: string) => `Open the delivery of ${type}`,
    status: 'Status',
    statuses: { SUCCEEDED: 'Delivered', PENDING: 'Waiting', FAILED: 'Failed' } satisfies Record<
      Delivery['status'],
      string
    >,
    retrying: 'Trying again',
    result: 'What happened',
    attempts: 'Attempts',
    time: 'Last attempt',
    again: 'Send again',
    sentAgain: 'Sending the event again.',
    causes: {
      EVENT: '',
      RESEND: 'sent again',
      REPLAY: 'sent again',
      TEST: 'test',
    } satisfies Record<Delivery['cause'], string>,
    detail: 'Delivery',
    next: 'Next attempt',
    attempt: (number: number) => `Attempt ${number}`,
    took: (ms: number) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`),
    response: 'Response of the endpoint',
    noBody: 'The response has no body.',
    request: 'Request that Keyward sent',
    headers: 'Each attempt also has the headers webhook-timestamp and webhook-signature.',
    notSent: 'The first attempt follows within a few seconds.',
    gone: 'The event is older than 30 days and has been deleted.',
    delivered: (status: number, took: string) => `The endpoint responded with ${status} in ${took}.`,
    failures: {
      redirect: (status: number) =>
        `The endpoint responded with ${status}, a redirect. Keyward follows no redirects: enter the final URL.`,
      credentials: (status: number) =>
        `The endpoint rejected the request with ${status}. Check that it verifies the signature with the current secret.`,
      missing: (status: number) => `Nothing exists at this URL (${status}). Check the path of the URL.`,
      method: (status: number) => `The endpoint does not accept POST requests at this URL (${status}).`,
      gone: 'The endpoint responded with 410 Gone, which disables it.',
      busy: (status: number) => `The endpoint asked Keyward to wait (${status}).`,
      invalid: (status: number) =>
        `The endpoint rejected the request with ${status}. Its response below may contain the reason.`,
      server: (status: number) => `The endpoint failed with ${status}. The log of the receiver contains the reason.`,
      refused: 'Nothing accepts connections at this address and port. Check that the receiver is running.',
      timeout:
        'The endpoint did not respond within 15 seconds. Let it respond first, and process the event afterwards.',
      certificate: 'The TLS certificate of the endpoint is not valid for this URL, or has expired.',
      unknownHost: 'The host name of the URL has no address. Check its spelling, and its DNS record.',
      closed: 'The endpoint closed the connection before it responded.',
      blocked: 'The host name leads to a private or reserved address. Keyward sends only to public addresses.',
    },
  },

  events: {
    title: 'Events',
    intro: 'Everything that happened in the last 30 days. Endpoints receive the events of their types.',
    at: 'At',
    type: 'Type',
    resource: 'On',
    who: 'By',
    empty: 'No events in the last 30 days.',
    emptyFiltered: 'No event matches these filters.',
    group: 'About',
    groups: {
      'license.*': 'Licenses',
      'machine.*': 'Machines',
      'access_rule.*': 'Access rules',
      'access_rules.*': 'Imports of rules',
      'access_rule_set.*': 'Sets of rules',
      'customer.*': 'Customers',
      'product.*': 'Products',
      'api_key.*': 'API keys',
      'token.*': 'Tokens',
      'member.*': 'Members',
      'signing_key.*': 'Signing keys',
      'webhook_endpoint.*': 'Webhooks',
      'quota.*': 'Quotas',
    },
    detail: 'Event',
    open: (type: string) => `Open the event ${type}`,
    copy: 'Copy the event',
    body: 'The event as endpoints receive it',
  },
} as const
