/** Connects a baseline to the program that started it. */

/**
 * Sends the port over the IPC channel, or prints it where there is none. Ends the baseline on a signal or when the
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
