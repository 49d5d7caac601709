/**
 * Serves the console and the portal, web pages that use the management API. Its files are read once, at the start. Scripts and styles have a hash in
 * their names, so browsers cache them for a year. A request for any other path below /console gets the page of the console, which selects
 * the screen by the path.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'

import { CONSOLE_FOLDER } from '@keyward/console'
import type { Express, Request, RequestHandler, Response } from 'express'

import { contentSecurityPolicy } from '../http/page.ts'

const CONTENT_SECURITY_POLICY = contentSecurityPolicy("'self'")

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** The encodings of the built files, in order of preference. */
const ENCODINGS = [
  { name: 'br', extension: '.br' },
  { name: 'gzip', extension: '.gz' },
] as const

interface File {
  type: string
  plain: Buffer
  compressed: readonly { encoding: string; bytes: Buffer }[]
}

function readFile(path: string): File {
  const compressed = ENCODINGS.map(({ name, extension }) => ({ encoding: name, bytes: readFileSync(path + extension) }))
  return { type: TYPES[extname(path)] ?? 'application/octet-stream', plain: readFileSync(path), compressed }
}

/** Returns null when the console has not been built. */
function readConsole(): { page: File; portal: File; assets: ReadonlyMap<string, File> } | null {
  const assets = join(CONSOLE_FOLDER, 'assets')
  try {
    const names = readdirSync(assets).filter((name) => extname(name) in TYPES)
    const files = new Map(names.map((name) => [name, readFile(join(assets, name))]))
    const page = readFile(join(CONSOLE_FOLDER, 'index.html'))
    return { page, portal: readFile(join(CONSOLE_FOLDER, 'portal.html')), assets: files }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

function sendFile(request: Request, response: Response, file: File, cacheControl: string): void {
  const chosen = file.compressed.find(({ encoding }) => request.acceptsEncodings([encoding]) === encoding)
  response.setHeader('content-type', file.type)
  response.setHeader('content-security-policy', CONTENT_SECURITY_POLICY)
  response.setHeader('cache-control', cacheControl)
  response.vary('accept-encoding')
  if (chosen) response.setHeader('content-encoding', chosen.encoding)
  const bytes = chosen?.bytes ?? file.plain
  response.setHeader('content-length', bytes.length)
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

/** Mounts the console, the portal, and a redirect from `/` to the console. Mounts nothing when the console has not been built. */
export function mountConsole(app: Express, methodNotAllowed: (allow: string) => RequestHandler): void {
  const built = readConsole()
  if (built === null) return
  app
    .route('/')
    .get((_request, response) => response.redirect(302, 'console'))
    .all(methodNotAllowed('GET, HEAD'))
  app
    .route('/console/assets/:name')
    .get((request, response, next) => {
      const file = built.assets.get(request.params.name)
      if (!file) next()
      else sendFile(request, response, file, 'public, max-age=31536000, immutable')
    })
    .all(methodNotAllowed('GET, HEAD'))
  const pages = {
    '/console': built.page,
    '/console/': built.page,
    '/console/*path': built.page,
    '/portal': built.portal,
  }
  for (const [path, page] of Object.entries(pages))
    app
      .route(path)
      .get((request, response) => sendFile(request, response, page, 'no-cache'))
      .all(methodNotAllowed('GET, HEAD'))
}
