// Keys: components say what a key does while they are there; the newest one counts.
//
// Stays true: letters do nothing while somebody types or a dialog is open.

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

export function listenToKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (isTyping(event)) return
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
  ['Allow', 'a'],
  ['Deny', 'd'],
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
