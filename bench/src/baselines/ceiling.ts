/**
 * The ceiling: a server that reads the body with uWebSockets.js and sends a constant response, the bytes of a valid verdict. No server that
 * computes its responses with this library can be faster.
 */

import { App, portOf } from '@keyward/uwebsockets'

import { announce } from './companion.ts'

const RESPONSE =
  '{"valid":true,"status":200,"message":"The license is valid.","code":"VALID","expiresAt":"2100-01-01T00:00:00.000Z"}'

const app = App()
app.post('/*', (response) => {
  response.onAborted(() => undefined)
  response.onData((_chunk, isLast) => {
    if (isLast) response.writeHeader('content-type', 'application/json').end(RESPONSE)
  })
})
app.listen('127.0.0.1', 0, (socket) => {
  if (socket === false) throw new Error('cannot listen on 127.0.0.1')
  announce(portOf(socket), () => app.close())
})
