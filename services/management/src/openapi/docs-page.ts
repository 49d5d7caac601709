/**
 * Serves `/openapi.json`, and at `/docs` a page that shows the document and sends requests. The content security policy of the page forbids
 * other hosts and inline scripts. The page stores no credential.
 */

import { createRequire } from 'node:module'
import { join } from 'node:path'

import express, { type Express, type RequestHandler } from 'express'

import { contentSecurityPolicy } from '../http/page.ts'

const CONTENT_SECURITY_POLICY = contentSecurityPolicy("'none'")

/** The mark of the console: packages/console/src/icon.svg, which is not part of a production installation. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">
  <path fill="#4553E6" fill-rule="evenodd" d="M6 0h12a6 6 0 0 1 6 6v12a6 6 0 0 1-6 6H6a6 6 0 0 1-6-6V6a6 6 0 0 1 6-6Zm4.5 11.94V19.5h3V18h3v-3h-3v-3.06a4.5 4.5 0 1 0-3 0Z"/>
</svg>
`

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Keyward API</title>
    <link rel="icon" type="image/svg+xml" href="docs/icon.svg">
  </head>
  <body>
    <div id="page"></div>
    <noscript>This page needs JavaScript. The document itself is <a href="openapi.json">openapi.json</a>.</noscript>
    <script type="module" src="docs/start.js"></script>
  </body>
</html>
`

/**
 * The script of the page. Every feature that calls another host is disabled. For an optional parameter with an `enum`, the page would send
 * the first value by default. The script therefore marks that value as a disabled example.
 */
const START_SCRIPT = `import { createApiReference } from './assets/standalone.esm.js'
const content = await (await fetch('openapi.json')).json()
for (const item of Object.values(content.paths))
  for (const { parameters = [] } of Object.values(item))
    for (const parameter of parameters)
      if (parameter.required !== true && parameter.schema.enum)
        parameter.examples = { default: { value: parameter.schema.enum[0], 'x-disabled': true } }
createApiReference('#page', {
  content,
  agent: { disabled: true },
  mcp: { disabled: true },
  telemetry: false,
  persistAuth: false,
  withDefaultFonts: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  hideModels: true,
  hideDownloadButton: true,
  orderSchemaPropertiesBy: 'preserve',
  defaultRequestBodyView: 'raw',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})
`

/** The modules of the page. The package also contains source maps and other builds, which are not served. */
const ASSET = /^\/(?:standalone\.esm|chunks\/[\w.-]+)\.js$/
const ASSETS_FOLDER = join(createRequire(import.meta.url).resolve('@scalar/api-reference'), '../browser')

const withPolicy: RequestHandler = (_request, response, next) => {
  response.setHeader('content-security-policy', CONTENT_SECURITY_POLICY)
  next()
}

export function mountDocs(
  app: Express,
  /** Returns the document as JSON. */
  readDocument: () => Promise<string>,
  methodNotAllowed: (allow: string) => RequestHandler,
): void {
  const texts = [
    { path: '/openapi.json', type: 'application/json', read: readDocument },
    { path: '/docs', type: 'html', read: () => PAGE },
    { path: '/docs/icon.svg', type: 'image/svg+xml', read: () => ICON },
    { path: '/docs/start.js', type: 'text/javascript', read: () => START_SCRIPT },
  ]
  for (const { path, type, read } of texts)
    app
      .route(path)
      .get(withPolicy, async (_request, response) => void response.type(type).send(await read()))
      .all(methodNotAllowed('GET, HEAD'))
  app
    .route('/docs/')
    .get((_request, response) => response.redirect(308, '../docs'))
    .all(methodNotAllowed('GET, HEAD'))
  const files = express.static(ASSETS_FOLDER, { index: false, redirect: false, maxAge: '1h' })
  app.use('/docs/assets', withPolicy, (request, response, next) => {
    if (ASSET.test(request.path)) files(request, response, next)
    else next()
  })
}
