// What a layout takes and gives. Nothing here loads the library that makes it.

export const NODE = { width: 168, height: 48 }

/** A column as the layout sees it: names and lines only. */
export interface ColumnShape {
  readonly id: string
  readonly nodes: readonly string[]
  readonly edges: readonly { readonly from: string; readonly to: string }[]
  readonly from: string | null
}

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Area extends Point {
  readonly width: number
  readonly height: number
}

export interface Layout {
  readonly columns: Readonly<Record<string, Area>>
  /** By node, inside of its column. */
  readonly nodes: Readonly<Record<string, Point>>
  /** By column: the line from the node that began it, as an SVG path. */
  readonly routes: Readonly<Record<string, string>>
}
