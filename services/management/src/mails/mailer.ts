/** Sends one mail through the mail server of the operator (docs/api.md#e3). Each mail has a connection of its own. */

import { createTransport } from 'nodemailer'
import { z } from 'zod'

import type { Message } from './render.ts'
import { requiresTls, type SmtpOptions } from './smtp-options.ts'

const CONNECT_MS = 10_000
const SILENCE_MS = 20_000
const TIMEOUT_MS = 60_000
const MAX_ERROR_LENGTH = 300
const OUTAGE = 'The mail server could not be used. The log of the management service contains the reason.'

/** The result of an attempt. `error` is null when the server has accepted the mail. */
export interface Sent {
  error: string | null
  /** Whether a repeated attempt would fail too. */
  isFinal: boolean
  /** The failure of the mail server itself, for the log of the operator. Vendors do not see its details. */
  outage: unknown
}

export interface Envelope {
  id: string
  recipient: string
  sender: string
  replyTo: string | null
}

export interface Mailer {
  /** Makes one attempt, which takes at most a minute. Never rejects. */
  send: (envelope: Envelope, message: Message, ended: AbortSignal) => Promise<Sent>
}

const failure = z.object({
  message: z.string().default('The attempt failed.'),
  code: z.string().optional(),
  responseCode: z.int().optional(),
})

/**
 * Returns the result of a failed attempt. A response of 5xx to the sender, the recipient or the message is final. One to the greeting or the
 * login says nothing about the mail, and may contain details of the operator's network.
 */
function resultOf(error: unknown): Sent {
  const { message, code = '', responseCode = 500 } = failure.parse(error)
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return { error: OUTAGE, isFinal: false, outage: error }
  const shown = message.replaceAll(/[\p{Cc}\p{Cs}]+/gu, ' ').slice(0, MAX_ERROR_LENGTH)
  return { error: shown, isFinal: responseCode >= 500, outage: null }
}

/** Creates a mailer. Tests pass the certificate authority of their server, and a shorter limit. */
export function createMailer(
  options: SmtpOptions,
  { ca, timeoutMs = TIMEOUT_MS }: { ca?: string | undefined; timeoutMs?: number | undefined } = {},
): Mailer {
  const { host, port, secure, login, from } = options
  const transport = createTransport({
    host,
    port,
    secure,
    requireTLS: !secure && requiresTls(options),
    ...(login && { auth: login }),
    ...(ca !== undefined && { tls: { ca } }),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    async send({ id, recipient, sender, replyTo }, message, ended) {
      try {
        await transport.sendMail({
          ...message,
          // As a text, an address with a comma would be a list of addresses.
          envelope: { from, to: { name: '', address: recipient } },
          from: { name: sender, address: from },
          to: { name: '', address: recipient },
          ...(replyTo !== null && { replyTo: { name: '', address: replyTo } }),
          // A repeated attempt has the same id, by which mail servers recognize a duplicate.
          messageId: `<${id}@${from.slice(from.indexOf('@') + 1)}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.any([ended, AbortSignal.timeout(timeoutMs)]),
        })
        return { error: null, isFinal: true, outage: null }
      } catch (error) {
        return resultOf(error)
      }
    },
  }
}
