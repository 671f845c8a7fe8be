// Keys: components say what a key does while they are there; the newest one counts.
//
// Stays true: letters do nothing while somebody types or a dialog is open, nor for a second after that. Where a field goes away under
// the words that somebody types, they do nothing until the typing has stopped.

import { useEffect, useRef } from 'react'

/** By key, or by two keys one after the other: `j`, `g i`. */
export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => void>>

const CHORD_MS = 1_200
const maps: { current: KeyMap }[] = []
let chord: { readonly key: string; readonly at: number } | null = null

/** These keys work while the component is there. */
export function useKeys(keys: KeyMap): void {
  const latest = useRef(keys)
  latest.current = keys
  useEffect(() => {
    maps.push(latest)
    return () => {
      maps.splice(maps.indexOf(latest), 1)
    }
  }, [])
}

/** What a press does, and what is remembered for the next one. */
export function findKey(
  layers: readonly KeyMap[],
  pressed: { readonly key: string; readonly before: string | null },
): ((event: KeyboardEvent) => void) | undefined {
  const names = pressed.before === null ? [pressed.key] : [`${pressed.before} ${pressed.key}`, pressed.key]
  for (const name of names) {
    for (const layer of layers.toReversed()) if (Object.hasOwn(layer, name)) return layer[name]
  }
  return undefined
}

/** True where a press belongs to what has the focus. */
function isTyping(event: KeyboardEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return true
  const { target } = event
  return target instanceof Element && target.closest('input, textarea, select, dialog[open], [role="menu"]') !== null
}

const FIELDS = 'input:not([type="checkbox"], [type="radio"], [type="range"]), textarea, select'
/** So long after typing, letters are not meant for the page. */
const QUIET_MS = 1_000

/** Keeps shortcuts from letters that were typed for a field. */
class Quiet {
  private until = 0
  private field: Element | null = null
  private isLost = false
  private lastAt = 0

  focused(target: EventTarget | null): void {
    this.field = target instanceof Element && target.matches(FIELDS) ? target : null
  }

  typed(event: KeyboardEvent): void {
    this.isLost = false
    if (event.target instanceof Element && event.target.matches(FIELDS) && WRITES.test(event.key))
      this.until = event.timeStamp + QUIET_MS
  }

  /** Whether a press belongs to what was typed just now. */
  holds({ timeStamp }: KeyboardEvent): boolean {
    if (this.field !== null && !this.field.isConnected) {
      this.isLost = true
      this.field = null
      this.until = timeStamp + QUIET_MS
    }
    const isHeld = timeStamp < this.until
    // Whoever types on has not seen yet that the field is gone.
    if (isHeld && this.isLost) this.until = timeStamp + QUIET_MS
    return isHeld
  }

  /** Whether no other key was pressed right before: letters of a word come one after the other. */
  isAlone({ timeStamp }: KeyboardEvent): boolean {
    const gap = timeStamp - this.lastAt
    this.lastAt = timeStamp
    return gap > ALONE_MS
  }
}

const WRITES = /^(?:.|Enter|Backspace|Delete|Process|Unidentified)$/u
const ALONE_MS = 400
const lone = new WeakSet<KeyboardEvent>()

/** True for a press that answers for somebody: the key was up before, and it is not a letter of a word. */
export function isDeliberate(event: KeyboardEvent): boolean {
  return !event.repeat && lone.has(event)
}

export function listenToKeys(): void {
  const quiet = new Quiet()
  document.addEventListener('focusin', ({ target }) => quiet.focused(target))
  document.addEventListener('keydown', (event) => {
    if (quiet.isAlone(event)) lone.add(event)
    if (isTyping(event)) return quiet.typed(event)
    if (quiet.holds(event)) return
    const before = chord !== null && event.timeStamp - chord.at < CHORD_MS ? chord.key : null
    chord = { key: event.key, at: event.timeStamp }
    const act = findKey(
      maps.map(({ current }) => current),
      { key: event.key, before },
    )
    if (act === undefined) return
    event.preventDefault()
    act(event)
  })
}

/** All keys, for the dialog that lists them. */
export const KEY_HELP: readonly (readonly [does: string, ...keys: string[]])[] = [
  ['Next, previous', 'j', 'k'],
  ['Open or close', '↵'],
  ['Up to the host', 'u'],
  ['Next that needs you', '.'],
  ['Allow, on the card with the focus', 'a'],
  ['Deny, on the card with the focus', 'd'],
  ['Fork from here', 'f'],
  ['Retry', 'r'],
  ['Edit and answer anew', 'e'],
  ['What the model saw', 'm'],
  ['Why allowed', 'w'],
  ['Copy a link to this', 'c'],
  ['Thread, graph, time', '1', '2', '3'],
  ['Back to the inbox', 'g', 'i'],
  ['New run', 'n'],
  ['Find', '/'],
  ['These keys', '?'],
]
