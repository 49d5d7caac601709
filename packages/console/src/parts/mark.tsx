/** The mark of Keyward: a keyhole and the key that fits it. The file icon.svg contains the same shape. */

const SHAPE =
  'M6 0h12a6 6 0 0 1 6 6v12a6 6 0 0 1-6 6H6a6 6 0 0 1-6-6V6a6 6 0 0 1 6-6Zm4.5 11.94V19.5h3V18h3v-3h-3v-3.06a4.5 4.5 0 1 0-3 0Z'

export function Mark({ size }: { size?: 'large' }) {
  return (
    <svg className="mark" data-size={size} viewBox="0 0 24 24" aria-hidden="true">
      <path fill="currentColor" fillRule="evenodd" d={SHAPE} />
    </svg>
  )
}
