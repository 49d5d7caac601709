import { scaleLinear } from '@visx/scale'
import { LinePath } from '@visx/shape'

const WIDTH = 70
const HEIGHT = 24

/** A small line without axes, for the course of a figure that stands beside it. Screen readers skip it. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const x = scaleLinear({ domain: [0, Math.max(1, values.length - 1)], range: [1, WIDTH - 1] })
  const y = scaleLinear({
    domain: [Math.min(...values), Math.max(...values, Math.min(...values) + 1e-9)],
    range: [HEIGHT - 2, 2],
  })
  return (
    <svg className="sparkline" width={WIDTH} height={HEIGHT} aria-hidden="true">
      <LinePath data={[...values]} x={(_, index) => x(index)} y={(value) => y(value)} className="chart-line" />
    </svg>
  )
}
