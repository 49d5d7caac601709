/** Starts real mail servers on this machine, which keep the mails that they accept. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { callbackify } from 'node:util'

import { SMTPServer, type SMTPServerDataStream, type SMTPServerOptions, type SMTPServerSession } from 'smtp-server'

/** The variables of a service whose mail server is down. */
export const NO_MAIL_SERVER = { SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'mail@keyward.example' }

export interface ReceivedMail {
  to: string[]
  from: string
  isEncrypted: boolean
  /** The headers as sent, with joined continuation lines. */
  headers: string
  raw: string
}

/** The response to a mail: null to accept it, or an error with a status. */
type Respond = (mail: ReceivedMail) => number | null | Promise<number | null>

export interface MailServer {
  port: number
  received: ReceivedMail[]
  /** The response to further mails. */
  respond: Respond
  close(): Promise<void>
}

/** Returns a certificate for this machine, and its key. */
export function createCertificate(): { cert: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'mail-server-'))
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', keyFile, '-out', certFile], {
    stdio: 'ignore',
  })
  const made = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  rmSync(folder, { recursive: true })
  return made
}

function error(status: number): Error {
  return Object.assign(new Error(`The test responds ${status}.`), { responseCode: status })
}

export async function startMailServer(options: SMTPServerOptions = {}, port = 0): Promise<MailServer> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.cert === undefined ? ['STARTTLS'] : [],
    onData: callbackify(async (stream: SMTPServerDataStream, session: SMTPServerSession) => {
      const raw = await text(stream)
      const { mailFrom, rcptTo } = session.envelope
      const mail = {
        to: rcptTo.map(({ address }) => address),
        from: mailFrom === false ? '' : mailFrom.address,
        isEncrypted: session.secure,
        headers: raw.slice(0, raw.indexOf('\r\n\r\n')).replaceAll(/\r\n[ \t]+/g, ' '),
        raw,
      }
      const status = await started.respond(mail)
      if (status !== null) throw error(status)
      started.received.push(mail)
    }),
    ...options,
  })
  // A client that ends a connection early causes an error.
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.server.address()
  const started: MailServer = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    received: [],
    respond: () => null,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return started
}
