/**
 * Request codes: the text with which a person requests the file of a machine that has no network (docs/api.md#f9). The checksum detects a
 * code that was not copied completely. It proves nothing about the sender.
 */

import { decodeBase64Url, encodeBase64Url } from './base64.ts'
import { sha256, utf8 } from './hash.ts'
import { isRecord, isText, parseJson } from './payload.ts'

/** The content of a request code. */
export interface FileRequest {
  licenseKey: string
  machineId: string
  /** A name by which people recognize the machine. */
  hostname?: string | undefined
}

const PREFIX = 'KWR1'
const CHECKSUM_CHARACTERS = 8
/** The maximum length of a code in characters. It bounds the cost of hostile input. Real codes are far shorter. */
const MAX_CODE_LENGTH = 4 * 1024

/** Returns the code of a request. The same request always has the same code. Rejects in a page over http, which has no `crypto.subtle`. */
export async function requestCodeOf({ licenseKey, machineId, hostname }: FileRequest): Promise<string> {
  const body = `${PREFIX}.${encodeBase64Url(utf8(JSON.stringify({ licenseKey, machineId, hostname })))}`
  return `${body}.${await checksumOf(body)}`
}

/** Returns the request of a code, or null for any other text. Blanks and line breaks in the text are ignored. */
export async function parseRequestCode(text: string): Promise<FileRequest | null> {
  const code = text.length > MAX_CODE_LENGTH ? '' : text.replaceAll(/\s/g, '')
  const [prefix, payload = '', checksum, ...rest] = code.split('.')
  if (prefix !== PREFIX || rest.length > 0 || checksum !== (await checksumOf(`${prefix}.${payload}`))) return null
  const bytes = decodeBase64Url(payload)
  return bytes === null ? null : readRequest(parseJson(bytes))
}

function readRequest(value: unknown): FileRequest | null {
  if (!isRecord(value)) return null
  const { licenseKey, machineId, hostname } = value
  if (!isText(licenseKey) || !isText(machineId)) return null
  return { licenseKey, machineId, ...(isText(hostname) && { hostname }) }
}

async function checksumOf(body: string): Promise<string> {
  return encodeBase64Url(await sha256(utf8(body))).slice(0, CHECKSUM_CHARACTERS)
}
