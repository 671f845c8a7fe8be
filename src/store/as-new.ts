/** As if it were new: stores take new rows at version 1 only. */
export function asNew<Row extends { readonly version: number }>(row: Row): Row {
  return row.version === 1 ? row : { ...row, version: 1 }
}
