/** The machine slots of a license, drawn as one block for each slot. */

const MOST_BLOCKS = 8

export function Slots({ used, max, isRefused = false }: { used: number; max: number | null; isRefused?: boolean }) {
  return (
    <span className={isRefused ? 'warning-text' : 'slots-text'}>
      {max !== null && max <= MOST_BLOCKS && (
        <span className="slots" aria-hidden="true" data-refused={isRefused ? '' : undefined}>
          {Array.from({ length: Math.max(max, used) }, (_, index) => (
            <b key={index} data-taken={index < used ? '' : undefined} />
          ))}
        </span>
      )}
      {used} / {max ?? '∞'}
    </span>
  )
}
