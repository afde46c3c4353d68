//! The data of the loops: plain arrays of the columns that the four queries read.
//!
//! Dimension attributes are small codes indexed by key (entry 0 is unused), with a list of names per attribute; a date is its
//! position in the date table.

use std::{collections::HashMap, ops::Range};

use tandem_column::{Codes, Column, Data, Error, Result, Table};

/// The names that codes stand for.
#[derive(Default)]
pub struct Names(Vec<String>);

impl Names {
    /// Returns the name of a code.
    pub fn get(&self, code: usize) -> &str {
        &self.0[code]
    }

    /// Finds the code of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|known| known == name)
    }
}

/// The columns that the loops read.
#[derive(Default)]
pub struct Arrays {
    pub(crate) customer: Vec<i32>,
    pub(crate) part: Vec<i32>,
    pub(crate) supplier: Vec<i32>,
    pub(crate) date: Vec<u16>,
    pub(crate) quantity: Vec<u8>,
    pub(crate) discount: Vec<u8>,
    pub(crate) price: Vec<i32>,
    pub(crate) revenue: Vec<i32>,
    pub(crate) cost: Vec<i32>,
    pub(crate) day_year: Vec<u8>,
    pub(crate) customer_nation: Vec<u8>,
    pub(crate) supplier_nation: Vec<u8>,
    pub(crate) nation_region: Vec<u8>,
    pub(crate) part_maker: Vec<u8>,
    pub(crate) part_category: Vec<u8>,
    pub(crate) part_brand: Vec<u16>,
    pub(crate) nation_names: Names,
    pub(crate) region_names: Names,
    pub(crate) maker_names: Names,
    pub(crate) category_names: Names,
    pub(crate) brand_names: Names,
}

impl Arrays {
    /// Copies what the loops need from resident SSB tables, found by name.
    ///
    /// # Errors
    /// A table or column is missing, or the values are not those of SSB.
    pub fn from_tables<'a>(table: impl Fn(&str) -> Option<&'a Table>) -> Result<Arrays> {
        let table = |name: &str| table(name).ok_or_else(|| Error::input(format!("The loops need SSB's table {name}.")));
        let (fact, date, part) = (table("lineorder")?, table("date")?, table("part")?);
        let (customer, supplier) = (table("customer")?, table("supplier")?);

        let keys: Vec<i32> = integers(date, "d_datekey")?;
        let position: HashMap<i32, u16> = keys.iter().enumerate().map(|(at, &key)| (key, at as u16)).collect();
        let days: Option<Vec<u16>> = mapped(fact, "lo_orderdate", |key| position.get(&(key as i32)).copied())?;
        let mut arrays = Arrays {
            customer: integers(fact, "lo_custkey")?,
            part: integers(fact, "lo_partkey")?,
            supplier: integers(fact, "lo_suppkey")?,
            date: days.ok_or_else(|| Error::input("The loops need every lo_orderdate in the date table."))?,
            quantity: integers(fact, "lo_quantity")?,
            discount: integers(fact, "lo_discount")?,
            price: integers(fact, "lo_extendedprice")?,
            revenue: integers(fact, "lo_revenue")?,
            cost: integers(fact, "lo_supplycost")?,
            day_year: integers::<i32>(date, "d_year")?.iter().map(|year| (year - 1992).clamp(0, 7) as u8).collect(),
            ..Arrays::default()
        };
        let regions = [texts(customer, "c_region")?, texts(supplier, "s_region")?].concat();
        let nations = [texts(customer, "c_nation")?, texts(supplier, "s_nation")?].concat();
        let (region_codes, region_names) = encode(&regions);
        let (nation_codes, nation_names) = encode(&nations);
        arrays.nation_region = vec![0; nation_names.0.len()];
        for (nation, region) in nation_codes.iter().zip(&region_codes) {
            arrays.nation_region[*nation] = *region as u8;
        }
        let customers = customer.rows();
        arrays.customer_nation = by_key(customer, "c_custkey", &nation_codes[..customers])?;
        arrays.supplier_nation = by_key(supplier, "s_suppkey", &nation_codes[customers..])?;
        (arrays.nation_names, arrays.region_names) = (nation_names, region_names);
        let attribute = |name| -> Result<(Vec<usize>, Names)> { Ok(encode(&texts(part, name)?)) };
        let ((maker, maker_names), (category, category_names), (brand, brand_names)) =
            (attribute("p_mfgr")?, attribute("p_category")?, attribute("p_brand1")?);
        if nation_limit(&arrays) || category_names.0.len() > 255 || brand_names.0.len() > 1024 {
            return Err(Error::input("The loops need SSB's hierarchies, but there are too many nations or brands."));
        }
        arrays.part_maker = by_key(part, "p_partkey", &maker)?;
        arrays.part_category = by_key(part, "p_partkey", &category)?;
        arrays.part_brand = by_key(part, "p_partkey", &brand)?;
        (arrays.maker_names, arrays.category_names, arrays.brand_names) = (maker_names, category_names, brand_names);
        arrays.check_keys()?;
        Ok(arrays)
    }

    /// Returns how many rows the fact table has.
    pub fn rows(&self) -> usize {
        self.date.len()
    }

    /// Returns the positions of a year's days, which are consecutive.
    pub(crate) fn days_of_year(&self, year: i32) -> Range<u16> {
        let year = (year - 1992) as u8;
        let start = self.day_year.partition_point(|&y| y < year);
        let end = self.day_year.partition_point(|&y| y <= year);
        start as u16..end as u16
    }

    fn check_keys(&self) -> Result<()> {
        for (keys, length, name) in [
            (&self.customer, self.customer_nation.len(), "lo_custkey"),
            (&self.supplier, self.supplier_nation.len(), "lo_suppkey"),
            (&self.part, self.part_brand.len(), "lo_partkey"),
        ] {
            if keys.iter().any(|&key| key < 0 || key as usize >= length) {
                return Err(Error::input(format!(
                    "The loops need foreign keys that exist, which is not so in {name}."
                )));
            }
        }
        Ok(())
    }
}

fn nation_limit(arrays: &Arrays) -> bool {
    arrays.nation_names.0.len() > 32
}

fn column<'a>(table: &'a Table, name: &str) -> Result<impl Iterator<Item = &'a Column> + use<'a>> {
    let at = table.column_index(name).ok_or_else(|| Error::input(format!("The loops need SSB's column {name}.")))?;
    Ok(table.parts.iter().map(move |part| part.columns[at].as_ref()))
}

/// Maps every value of an integer column; `None` where the mapping has none.
fn mapped<T>(table: &Table, name: &str, map: impl Fn(i64) -> Option<T>) -> Result<Option<Vec<T>>> {
    let mut values = Vec::with_capacity(table.rows());
    for column in column(table, name)? {
        let Data::Int { base, codes } = &column.data else {
            return Err(Error::input(format!("The loops need integers in {name}.")));
        };
        let mut push = |code: u64| map(base.wrapping_add(code as i64)).map(|value| values.push(value)).is_some();
        let all = match codes {
            Codes::U8(codes) => codes.as_slice().iter().all(|&code| push(code.into())),
            Codes::U16(codes) => codes.as_slice().iter().all(|&code| push(code.into())),
            Codes::U32(codes) => codes.as_slice().iter().all(|&code| push(code.into())),
            Codes::U64(codes) => codes.as_slice().iter().all(|&code| push(code)),
        };
        if !all {
            return Ok(None);
        }
    }
    Ok(Some(values))
}

fn integers<T: TryFrom<i64>>(table: &Table, name: &str) -> Result<Vec<T>> {
    mapped(table, name, |value| T::try_from(value).ok())?
        .ok_or_else(|| Error::input(format!("The loops need the values of SSB, but some are too large in {name}.")))
}

fn texts(table: &Table, name: &str) -> Result<Vec<String>> {
    let mut values = Vec::with_capacity(table.rows());
    for column in column(table, name)? {
        values.extend((0..column.rows).map(|row| String::from_utf8_lossy(column.bytes_at(row)).into_owned()));
    }
    Ok(values)
}

/// Numbers the distinct values in the order of their first rows.
fn encode(values: &[String]) -> (Vec<usize>, Names) {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::new();
    let codes = values
        .iter()
        .map(|value| {
            *known.entry(value).or_insert_with(|| {
                names.push(value.clone());
                names.len() - 1
            })
        })
        .collect();
    (codes, Names(names))
}

/// Places each row's code at its key.
fn by_key<T: TryFrom<usize> + Clone + Default>(table: &Table, key: &str, codes: &[usize]) -> Result<Vec<T>> {
    let keys: Vec<i32> = integers(table, key)?;
    let length = keys.iter().max().map_or(1, |&key| key.max(0) as usize + 1);
    if keys.iter().any(|&key| key < 0) || length > 16 * (keys.len() + 1) {
        return Err(Error::input(format!("The loops need dense keys, which {key} does not have.")));
    }
    let mut values = vec![T::default(); length];
    for (key, code) in keys.iter().zip(codes) {
        values[*key as usize] = T::try_from(*code)
            .map_err(|_| Error::input(format!("The loops need few distinct values by {key}, as SSB has.")))?;
    }
    Ok(values)
}
