import { once } from 'node:events'
import { createServer } from 'node:http'

import express from 'express'
import { expect, test } from 'vitest'

import { messageClasses } from '../../src/http/express-messages.ts'

test('requests and responses keep their prototypes in Express', async () => {
  const app = express()
  const classes = messageClasses(app)
  const kept: boolean[] = []
  app.get('/things/:id', (request, response) => {
    kept.push(Object.getPrototypeOf(request) === classes.IncomingMessage.prototype)
    kept.push(Object.getPrototypeOf(response) === classes.ServerResponse.prototype)
    response.json({ id: request.params.id, name: request.query['name'], app: request.app === app })
  })
  const server = createServer(classes, app)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const response = await fetch(`http://127.0.0.1:${port}/things/7?name=a`)
  expect(await response.json()).toEqual({ id: '7', name: 'a', app: true })
  expect(kept).toEqual([true, true])
  server.close()
})
