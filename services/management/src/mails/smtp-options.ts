/** Parses the variables of the mail server. */

import { newEmail } from '@keyward/contract'

import { isLoopback } from '../http/site.ts'

interface Server {
  host: string
  port: number
  /** Whether the connection begins with TLS. Otherwise it switches to TLS with STARTTLS. */
  secure: boolean
  login: { user: string; pass: string } | null
}

export interface SmtpOptions extends Server {
  /** The address from which mails come. */
  from: string
  /** Whether a server without STARTTLS is accepted. A server at a loopback address is always accepted. */
  allowsPlain: boolean
}

/** The mail server with the options of this service. */
export interface MailOptions extends SmtpOptions {
  /** The maximum number of mails of one organization in 24 hours. */
  perDay: number
  /** The scheme and host at which customers reach the portal, or null. */
  portal: string | null
}

/** Returns the server that an address such as `smtps://user:password@host:465` names, or undefined. */
export function parseServer(value: string): Server | undefined {
  const url = URL.parse(value)
  if (url === null || url.hostname === '' || url.search !== '' || url.hash !== '') return undefined
  if (!['smtp:', 'smtps:'].includes(url.protocol) || !['', '/'].includes(url.pathname)) return undefined
  if ((url.username === '') !== (url.password === '') || url.port === '0') return undefined
  const secure = url.protocol === 'smtps:'
  try {
    const login = { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
    return {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (secure ? 465 : 587) : Number(url.port),
      secure,
      login: url.username === '' ? null : login,
    }
  } catch {
    return undefined // not percent-encoded
  }
}

/** Returns the scheme and host of an address without a path, or undefined. It has TLS unless it is a loopback address. */
export function parseOrigin(value: string): string | undefined {
  const url = URL.parse(value)
  if (url === null || url.origin !== value.replace(/\/$/, '')) return undefined
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)) ? url.origin : undefined
}

export function parseAddress(value: string): string | undefined {
  const parsed = newEmail.safeParse(value)
  return parsed.success ? parsed.data : undefined
}

export function requiresTls({ host, allowsPlain }: SmtpOptions): boolean {
  return !allowsPlain && !isLoopback(host)
}
