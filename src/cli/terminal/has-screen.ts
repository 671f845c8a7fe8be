/** Can lines be drawn over again here? One answer for all who ask: what is drawn, and whom a question can be put to. */
export function hasScreen({ isTTY }: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return isTTY === true && env['TERM'] !== 'dumb'
}
