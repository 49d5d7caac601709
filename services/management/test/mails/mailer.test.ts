import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, expect, test } from 'vitest'

import { createMailer } from '../../src/mails/mailer.ts'
import { parseServer, type SmtpOptions } from '../../src/mails/smtp-options.ts'
import { createCertificate, type MailServer, startMailServer } from '../support/mail-server.ts'

const servers: MailServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((one) => one.close()))
})

async function start(...given: Parameters<typeof startMailServer>): Promise<MailServer> {
  const server = await startMailServer(...given)
  servers.push(server)
  return server
}

const envelope = { id: 'mail-1', recipient: 'ada@example.com', sender: 'Acme', replyTo: null }
const message = { subject: 'Your license key', text: 'ABCD\n', html: '<p>ABCD</p>' }
const certificate = createCertificate()

/** Returns the result as text: `sent`, or whether the failure is final, with its error. */
async function send(
  url: string,
  given: Partial<SmtpOptions> & { ca?: string; timeoutMs?: number; recipient?: string } = {},
) {
  const { ca, timeoutMs, recipient = envelope.recipient, ...rest } = given
  const options = { ...parseServer(url)!, from: 'mail@keyward.example', allowsPlain: false, ...rest }
  const sent = await createMailer(options, { ca, timeoutMs }).send(
    { ...envelope, recipient },
    message,
    new AbortController().signal,
  )
  const { error, outage, isFinal } = sent
  return error === null ? 'sent' : `${isFinal ? 'final' : 'again'}: ${outage instanceof Error ? outage.message : error}`
}

test('sends a mail over TLS and over STARTTLS to a server with a trusted certificate', async () => {
  const plain = await start(certificate)
  const secure = await start({ ...certificate, secure: true })
  const ca = certificate.cert
  expect(await send(`smtp://localhost:${plain.port}`, { ca })).toBe('sent')
  expect(await send(`smtps://localhost:${secure.port}`, { ca })).toBe('sent')
  expect([...plain.received, ...secure.received].map(({ isEncrypted }) => isEncrypted)).toEqual([true, true])
})

test('sends nothing to a server whose certificate is not trusted', async () => {
  const plain = await start(certificate)
  const secure = await start({ ...certificate, secure: true })
  for (const url of [`smtp://localhost:${plain.port}`, `smtps://localhost:${secure.port}`])
    expect(await send(url)).toMatch(/^again: .*certificate/)
  expect(plain.received).toEqual([])
})

test('sends nothing without TLS to another host, unless SMTP_ALLOW_PLAIN is set', async () => {
  const { port, received } = await start()
  // The address 0.0.0.0 reaches this machine without being a loopback address.
  expect(await send(`smtp://0.0.0.0:${port}`)).toMatch(/^again: /)
  expect(received).toEqual([])
  expect(await send(`smtp://0.0.0.0:${port}`, { allowsPlain: true })).toBe('sent')
  expect(await send(`smtp://127.0.0.1:${port}`)).toBe('sent')
})

test('an address is one recipient, whatever it contains', async () => {
  const { port, received } = await start()
  for (const recipient of ['root,x@evil.example', 'a;b@x.example', 'g:a@x.example', '"a@x.example'])
    await send(`smtp://127.0.0.1:${port}`, { recipient })
  for (const { to } of received) expect(to).toHaveLength(1)
  expect(received.flatMap(({ to }) => to)).not.toContain('x@evil.example')
})

test('logs in, and a rejected login is not final', async () => {
  const { port, received } = await start({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth: ({ username, password }, _session, done) =>
      username === 'ke y' && password === 'p:ss' ? done(null, { user: 1 }) : done(new Error('wrong')),
  })
  expect(await send(`smtp://ke%20y:wrong@127.0.0.1:${port}`)).toMatch(/^again: .*535/)
  expect(await send(`smtp://ke%20y:p%3Ass@127.0.0.1:${port}`)).toBe('sent')
  expect(received).toHaveLength(1)
})

test('a response of 5xx is final, and a response of 4xx and a refused connection are not', async () => {
  const server = await start()
  const url = `smtp://127.0.0.1:${server.port}`
  for (const [status, kind] of [
    [451, 'again'],
    [550, 'final'],
  ] as const) {
    server.respond = () => status
    expect(await send(url)).toMatch(new RegExp(`^${kind}: .*${status}`))
  }
  const rejecting = (status: number) => {
    const onRcptTo: NonNullable<Parameters<typeof startMailServer>[0]>['onRcptTo'] = (_address, _session, done) =>
      done(Object.assign(new Error('no'), { responseCode: status }))
    return start({ onRcptTo })
  }
  expect(await send(`smtp://127.0.0.1:${(await rejecting(550)).port}`)).toMatch(/^final: /)
  expect(await send(`smtp://127.0.0.1:${(await rejecting(450)).port}`)).toMatch(/^again: /)
  expect(await send('smtp://127.0.0.1:9')).toMatch(/^again: .*REFUSED/)
})

test('an attempt ends when the server does not respond in time', async () => {
  const server = await start()
  server.respond = () => sleep(2_000, null)
  const sent = await send(`smtp://127.0.0.1:${server.port}`, { timeoutMs: 300 })
  expect(sent).toMatch(/^again: /)
})

test.each([
  'http://mail.example.com',
  'smtp://',
  'smtp://user@host',
  'smtp://a:%zz@host',
  'smtp://host/path',
  'smtp://host?a=1',
  'host',
])('rejects the address %j of a mail server', (value) => expect(parseServer(value)).toBeUndefined())
