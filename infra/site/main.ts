/**
 * `npm run site`: builds the documentation site into `infra/site/dist`, from the documents of the project. `-- --base /path/` sets the path at
 * which a host serves it. Any static host can serve the folder.
 */

import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

import { build } from 'vitepress'

import { listGroups, OPENAPI, resolveLinks, ROOT } from './pages.ts'

const { values } = parseArgs({ options: { base: { type: 'string', default: '/' }, out: { type: 'string' } } })
const folder = values.out ?? join(import.meta.dirname, 'dist')
const base = values.base.replace(/\/*$/, '/')
const require = createRequire(import.meta.url)
await build(import.meta.dirname, { base, outDir: folder })

// Programs that read documentation get the sources of the pages, and llms.txt as their index (https://llmstxt.org).
const groups = listGroups()
const documents = groups.flatMap(({ pages }) => pages)
const sources = new Set(documents.map(({ source }) => source))
for (const { source, path } of documents) {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), resolveLinks(source, readFileSync(join(ROOT, source), 'utf8'), sources, base))
}
const [, summary = ''] = /^# Keyward\n\n([^]+?)\n\n/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? []
const sections = groups.map(({ name, pages }) => {
  const links = pages.map(({ title, path }) => `- [${title}](${base}${path})`)
  return `## ${name}\n\n${links.join('\n')}\n`
})
const reference = `## API reference\n\n- [OpenAPI document](${base}openapi.json)\n`
const quoted = summary.replaceAll('\n', ' ')
writeFileSync(join(folder, 'llms.txt'), `# Keyward\n\n> ${quoted}\n\n${[...sections, reference].join('\n')}`)

// The reference of the API, as an installation shows it at /docs, but without requests to a service.
const scalar = join(require.resolve('@scalar/api-reference'), '../browser')
cpSync(scalar, join(folder, 'scalar'), { recursive: true, filter: (path) => !/\.map$|standalone\.js$/.test(path) })
copyFileSync(join(ROOT, OPENAPI), join(folder, 'openapi.json'))
copyFileSync(join(ROOT, 'packages/console/src/icon.svg'), join(folder, 'icon.svg'))
const options = {
  agent: { disabled: true },
  mcp: { disabled: true },
  telemetry: false,
  withDefaultFonts: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  hideTestRequestButton: true,
  hideModels: true,
  hideDownloadButton: true,
  orderSchemaPropertiesBy: 'preserve',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
}
writeFileSync(
  join(folder, 'openapi.html'),
  `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Keyward API</title>
  <link rel="icon" type="image/svg+xml" href="icon.svg">
  <p style="margin:0;padding:8px 16px;font:14px system-ui"><a href="./" style="color:var(--scalar-color-1)">Keyward documentation</a></p>
  <div id="page"></div>
  <noscript>This page needs JavaScript. The document itself is <a href="openapi.json">openapi.json</a>.</noscript>
  <script type="module">
    import { createApiReference } from './scalar/standalone.esm.js'
    const content = await (await fetch('openapi.json')).json()
    content.servers = [{ url: 'https://licenses.example.com', description: 'Your installation' }]
    content.info.description = content.info.description.replace(/To try an operation,[^]*?\\n\\n/, '')
    createApiReference('#page', { content, ...${JSON.stringify(options)} })
  </script>
</html>
`,
)
