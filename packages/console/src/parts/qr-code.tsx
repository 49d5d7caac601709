import { encode } from 'uqr'

/** The width of the blank margin, which readers require, in modules. */
const MARGIN = 4

/** Shows text as a QR code, which is black on white in both themes, because many readers recognize no other colors. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: MARGIN })
  const modules = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
  return (
    <svg className="qr-code" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shapeRendering="crispEdges">
      <path d={modules.join('')} />
    </svg>
  )
}
