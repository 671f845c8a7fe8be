/** The text without these characters at its end, in linear time: `/[./-]+$/` looks at each run of them again and again. */
export function trimEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}
