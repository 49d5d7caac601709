/** Connects a baseline to the program that started it. */

/**
 * Sends the port over the IPC channel, or prints the address if there is no channel. Ends the baseline on SIGTERM or SIGINT, or when the
 * channel closes. `close` stops listening.
 */
export function announce(port: number, close: () => void): void {
  if (process.send === undefined) console.log(`http://127.0.0.1:${port}`)
  else process.send({ type: 'listening', port })
  const stop = (): void => {
    close()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  process.once('disconnect', stop)
}
