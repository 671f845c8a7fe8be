import { useEffect } from 'react'
import { Cell, useCell } from '../window/cell.ts'

const said = new Cell<{ readonly text: string; readonly at: number } | null>(null)
const SHOWN_MS = 3_200

/** Says something short to the person, and to a screen reader. */
export function say(text: string): void {
  said.set({ text, at: Date.now() })
}

/** The one live region of the page. */
export function Toast() {
  const now = useCell(said)
  useEffect(() => {
    if (now === null) return
    const timer = setTimeout(() => said.set(null), SHOWN_MS + now.text.length * 20)
    return () => clearTimeout(timer)
  }, [now])
  return (
    <div role="status" className="toast-place">
      {now === null ? null : <p className="toast">{now.text}</p>}
    </div>
  )
}
