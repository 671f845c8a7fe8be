// Colours, and whether a terminal can be redrawn.
//
// Owns:      the few colours of the command line, and the rules of NO_COLOR and FORCE_COLOR.
// Called by: everything in `cli` that prints for people.
// Must stay true:
//   - Painting adds colour only: without it the text is the same.
//   - Who draws and who asks for keys use one answer of `hasScreen`.

import picocolors from 'picocolors'

const COLOURS = ['dim', 'bold', 'red', 'green', 'yellow', 'cyan'] as const

export type Colour = (typeof COLOURS)[number]
export type Paint = (colour: Colour, text: string) => string

/** Uses colours on a terminal or with FORCE_COLOR, and never with NO_COLOR. */
export function painter(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const colours = picocolors.createColors(wantsColour(stream, env))
  return (colour, text) => colours[colour](text)
}

function wantsColour(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false
  const forced = env['FORCE_COLOR']
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  return hasScreen(stream, env)
}

/** Tells whether lines can be redrawn here. Both the drawing code and the question code ask this function. */
export function hasScreen({ isTTY }: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return isTTY === true && env['TERM'] !== 'dumb'
}
