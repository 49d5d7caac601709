/**
 * `/openapi.json` and `/docs`, the page that shows the document and sends requests. Its content security policy forbids other hosts
 * and inline scripts.
 */

import express, { type Express, type RequestHandler } from 'express'
import { getAbsoluteFSPath } from 'swagger-ui-dist'

import type { OpenApiDocument } from './openapi.ts'

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Keyward management API</title>
    <link rel="stylesheet" href="docs/assets/swagger-ui.css">
    <link rel="icon" type="image/png" href="docs/assets/favicon-32x32.png">
  </head>
  <body>
    <div id="page"></div>
    <script src="docs/assets/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`

const START_SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#page',
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
  tryItOutEnabled: true,
})
`

const ASSETS = new Set(['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'])

const withPolicy: RequestHandler = (_request, response, next) => {
  response.setHeader('content-security-policy', CONTENT_SECURITY_POLICY)
  next()
}

export function mountDocs(
  app: Express,
  document: OpenApiDocument,
  methodNotAllowed: (allow: string) => RequestHandler,
): void {
  const texts = [
    { path: '/openapi.json', type: 'application/json', text: JSON.stringify(document) },
    { path: '/docs', type: 'html', text: PAGE },
    { path: '/docs/start.js', type: 'text/javascript', text: START_SCRIPT },
  ]
  for (const { path, type, text } of texts)
    app
      .route(path)
      .get(withPolicy, (_request, response) => void response.type(type).send(text))
      .all(methodNotAllowed('GET, HEAD'))
  app
    .route('/docs/')
    .get((_request, response) => response.redirect(308, '../docs'))
    .all(methodNotAllowed('GET, HEAD'))
  // The package also contains other pages, which are not served.
  const files = express.static(getAbsoluteFSPath(), { index: false, redirect: false, maxAge: '1h' })
  app.use('/docs/assets', withPolicy, (request, response, next) => {
    if (ASSETS.has(request.path.slice(1))) files(request, response, next)
    else next()
  })
}
