/** Builds the body of a webhook. The time of an event is the time in its id. */

export function timeOfEvent(id: string): string {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()
}

/** Returns the body of a webhook. `data` is JSON text. */
export function eventBody(event: { id: string; type: string; organizationId: string; data: string }): string {
  const { id, type, organizationId, data } = event
  const envelope = JSON.stringify({ id, type, timestamp: timeOfEvent(id), organizationId })
  return `${envelope.slice(0, -1)},"data":${data}}`
}
