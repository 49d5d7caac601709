/**
 * Builds the console and the portal into `dist/`: two pages, their scripts and stylesheets with hashes in their names, and compressed copies
 * of all files. The pages share no script, so the portal contains no code of the console's screens.
 * Skips the build if the sources and the lockfile have not changed since the last build.
 */

import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

import { rolldown } from 'rolldown'

import { CONSOLE_FOLDER } from '../folder.ts'

const { resolve } = createRequire(import.meta.url)
const HOME = new URL('..', import.meta.url).pathname
const ROOT = new URL('../../..', import.meta.url).pathname
const SOURCES = [
  join(HOME, 'src'),
  join(HOME, 'build'),
  join(ROOT, 'packages/contract/src'),
  join(ROOT, 'packages/address/src'),
  join(ROOT, 'packages/license-file/src'),
]
/** The stylesheets of the component library, in the order in which they apply. */
const STYLES = ['@mantine/core/styles.css', '@mantine/notifications/styles.css']
/** The stylesheets of the console. Later ones override earlier ones. */
const OWN_STYLES = [
  'tokens',
  'base',
  'mantine',
  'shell',
  'parts',
  'lists',
  'forms',
  'flow',
  'screens',
  'status',
  'check',
  'rules',
  'license',
  'overview',
].map(styleOf)
const PORTAL_STYLES = ['tokens', 'base', 'portal'].map(styleOf)
function styleOf(name: string): string {
  return join(HOME, `src/styles/${name}.css`)
}

const STAMP = 'sources.sha256'

const compress = [
  { extension: '.br', run: promisify(brotliCompress), options: { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } } },
  { extension: '.gz', run: promisify(gzip), options: { level: 9 } },
] as const

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

async function hashOfSources(): Promise<string> {
  const paths = [join(ROOT, 'pnpm-lock.yaml'), ...(await Promise.all(SOURCES.map(filesBelow))).flat()].toSorted()
  const hash = createHash('sha256')
  for (const path of paths)
    hash
      .update(relative(ROOT, path))
      .update('\0')
      .update(await readFile(path))
      .update('\0')
  return hash.digest('hex')
}

function hashOf(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 8)
}

/** Bundles the scripts of a page into the folder and returns the file name of the entry script. */
async function bundleScripts(folder: string, name: string, entryPath: string, isDevelopment: boolean): Promise<string> {
  const build = await rolldown({
    input: { [name]: join(HOME, entryPath) },
    platform: 'browser',
    // The container image of the management service is built without the tsconfig.json of the root folder.
    tsconfig: false,
    // `@keyward/address` imports `isIPv6` from `node:net`, which browsers lack.
    resolve: { alias: { 'node:net': join(HOME, 'src/api/net.ts') } },
    // Ignores warnings about "use client" directives, which have no effect in this bundle.
    onLog: (level, log, handle) => (log.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : handle(level, log)),
    transform: {
      define: {
        'process.env.NODE_ENV': '"production"',
        IS_DEVELOPMENT: String(isDevelopment),
      },
    },
  })
  const { output } = await build.write({
    dir: folder,
    format: 'esm',
    minify: true,
    entryFileNames: '[name]-[hash].js',
    chunkFileNames: '[name]-[hash].js',
  })
  await build.close()
  const entry = output.find((chunk) => chunk.type === 'chunk' && chunk.isEntry)
  if (!entry) throw new Error(`The bundle of the ${name} has no entry chunk.`)
  return entry.fileName
}

/** Copies a font file of a package and returns its file name. */
async function copyFont(folder: string, path: string): Promise<string> {
  const bytes = await readFile(resolve(path))
  const name = basename(path).replace('.woff2', `-${hashOf(bytes)}.woff2`)
  await writeFile(join(folder, name), bytes)
  return name
}

/** Returns the file name of the stylesheet, and the file name of the font that every screen of the page uses. */
async function bundleStyles(
  folder: string,
  page: string,
  paths: readonly string[],
): Promise<{ style: string; font: string }> {
  let css = (await Promise.all(paths.map((path) => readFile(path, 'utf8')))).join('\n')
  const fonts = []
  for (const [, path = ''] of css.matchAll(/url\('(@fontsource[^']+)'\)/g)) {
    const name = await copyFont(folder, path)
    fonts.push(name)
    css = css.replace(path, name)
  }
  const style = `${page}-${hashOf(css)}.css`
  await writeFile(join(folder, style), css)
  return { style, font: fonts[0] ?? '' }
}

const WITHOUT_SCRIPTS = {
  console: 'The console needs JavaScript. The management API offers the same functions; see /docs.',
  portal: 'This page needs JavaScript.',
} as const

function pageOf(
  name: keyof typeof WITHOUT_SCRIPTS,
  script: string,
  { style, font }: { style: string; font: string },
): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
    <meta name="color-scheme" content="light dark">
    <meta name="referrer" content="no-referrer">
    <title>${name === 'console' ? 'Keyward' : 'Your licenses'}</title>
    <link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
    <link rel="preload" href="/console/assets/${font}" as="font" type="font/woff2" crossorigin>
    <link rel="stylesheet" href="/console/assets/${style}">
    <script type="module" src="/console/assets/${script}"></script>
  </head>
  <body>
    <div id="${name}"></div>
    <noscript>${WITHOUT_SCRIPTS[name]}</noscript>
  </body>
</html>
`
}

/** Builds into a folder. A development build also contains the page `/console/design`. */
export async function buildInto(folder: string, isDevelopment = false): Promise<void> {
  const assets = join(folder, 'assets')
  await mkdir(assets, { recursive: true })
  const styles = [...STYLES.map((name) => resolve(name)), ...OWN_STYLES]
  const script = await bundleScripts(assets, 'console', 'src/main.tsx', isDevelopment)
  const portalScript = await bundleScripts(assets, 'portal', 'src/portal/main.tsx', isDevelopment)
  const portal = pageOf('portal', portalScript, await bundleStyles(assets, 'portal', PORTAL_STYLES))
  await writeFile(join(assets, 'icon.svg'), await readFile(join(HOME, 'src/icon.svg')))
  await writeFile(join(folder, 'index.html'), pageOf('console', script, await bundleStyles(assets, 'console', styles)))
  await writeFile(join(folder, 'portal.html'), portal)
  for (const path of await filesBelow(folder))
    for (const { extension, run, options } of compress)
      await writeFile(path + extension, await run(await readFile(path), options))
}

async function builtFrom(folder: string): Promise<string> {
  return readFile(join(folder, STAMP), 'utf8').catch(() => '')
}

/** Builds the console if its sources have changed, and returns whether they have. Several processes may build at the same time. */
export async function buildConsole(): Promise<boolean> {
  const stamp = await hashOfSources()
  if ((await builtFrom(CONSOLE_FOLDER)) === stamp) return false
  const folder = await mkdtemp(`${CONSOLE_FOLDER}-`)
  await buildInto(folder)
  await writeFile(join(folder, STAMP), stamp)
  // Another process may have finished the same build first.
  if ((await builtFrom(CONSOLE_FOLDER)) !== stamp) {
    await rm(CONSOLE_FOLDER, { recursive: true, force: true })
    await rename(folder, CONSOLE_FOLDER).catch(() => undefined)
  }
  await rm(folder, { recursive: true, force: true })
  return true
}
