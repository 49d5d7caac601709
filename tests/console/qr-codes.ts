/** Reads QR codes as the camera of a telephone does, with another library than the one that draws them. */

import { stripVTControlCharacters } from 'node:util'

import type { Locator } from 'playwright-core'
import { decodeQR } from 'qr/decode.js'
import { z } from 'zod'

/** The number of pixels along the edge of a module. */
const MODULE_PIXELS = 4
/** The light halves of each character with which a terminal shows two modules. */
const LIGHT_HALVES: Readonly<Record<string, readonly [upper: boolean, lower: boolean]>> = {
  '█': [true, true],
  '▀': [true, false],
  '▄': [false, true],
  ' ': [false, false],
}

const picture = z.object({ width: z.number(), height: z.number(), data: z.string() })

/** Returns the text of the QR code that the browser shows in an element. */
export async function readQrCode(element: Locator): Promise<string> {
  const png = await element.screenshot()
  // The page forbids scripts to load pictures, so an empty page decodes the screenshot.
  const page = await element.page().context().newPage()
  const pixels: unknown = await page.evaluate(`(async () => {
    const bytes = await (await fetch('data:image/png;base64,${png.toString('base64')}')).blob()
    const bitmap = await createImageBitmap(bytes)
    const { width, height } = bitmap
    const canvas = new OffscreenCanvas(width, height).getContext('2d')
    canvas.drawImage(bitmap, 0, 0)
    let data = ''
    for (const byte of canvas.getImageData(0, 0, width, height).data) data += String.fromCharCode(byte)
    return { width, height, data }
  })()`)
  await page.close()
  const { width, height, data } = picture.parse(pixels)
  return decodeQR({ width, height, data: Buffer.from(data, 'latin1') })
}

/** Returns the text of the QR code that a program has printed in a terminal. */
export function readPrintedQrCode(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .filter((line) => /^[█▀▄ ]{20,}$/.test(line))
  const halves = lines.map((line) => Array.from(line, (character) => LIGHT_HALVES[character] ?? [true, true]))
  const rows = halves.flatMap((line) => [line.map(([upper]) => upper), line.map(([, lower]) => lower)])
  const [width, height] = [(rows[0]?.length ?? 0) * MODULE_PIXELS, rows.length * MODULE_PIXELS]
  const data = new Uint8ClampedArray(width * height * 4)
  for (let i = 0; i < width * height; i++) {
    const [x, y] = [Math.floor((i % width) / MODULE_PIXELS), Math.floor(i / width / MODULE_PIXELS)]
    const luminance = rows[y]?.[x] === true ? 255 : 0
    data.set([luminance, luminance, luminance, 255], 4 * i)
  }
  return decodeQR({ width, height, data })
}
