/** Adapts the color of the vendor to both themes, so that text in it, and on it, stays readable. */

type Rgb = readonly number[]

/** The contrast of normal text that WCAG 2 requires. */
const MIN_CONTRAST = 4.5
const STEPS = 20
/** The brightest surface of the light theme and that of the dark theme, and the ink toward which a color is mixed. */
const THEMES = { light: { surface: '#fafafb', ink: '#000000' }, dark: { surface: '#15171b', ink: '#ffffff' } } as const

function rgbOf(hex: string): Rgb {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16))
}

function luminance(color: Rgb): number {
  const [r = 0, g = 0, b = 0] = color.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

function contrast(one: Rgb, other: Rgb): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

/** Returns the color, mixed with as much of the ink as the contrast with the surface of the theme requires. */
export function readable(hex: string, theme: keyof typeof THEMES): string {
  const { surface, ink } = THEMES[theme]
  const [color, end, ground] = [rgbOf(hex), rgbOf(ink), rgbOf(surface)]
  for (let step = 0; step < STEPS; step++) {
    const mixed = color.map((part, i) => Math.round(part + ((end[i] ?? 0) - part) * (step / STEPS)))
    if (contrast(mixed, ground) >= MIN_CONTRAST) return `rgb(${mixed.join(' ')})`
  }
  return ink
}

/** Uses the color on the whole page. Text on it has the color of the opposite surface. */
export function applyAccent(hex: string | null): void {
  if (hex === null) return
  const { style } = document.documentElement
  const accent = `light-dark(${readable(hex, 'light')}, ${readable(hex, 'dark')})`
  for (const name of ['--accent', '--accent-hover', '--accent-text', '--focus']) style.setProperty(name, accent)
  style.setProperty('--on-accent', 'light-dark(#ffffff, #0e0f12)')
}
