//! `quantile_disc(value, fraction)`, and as SQL has it `percentile_disc(fraction) WITHIN GROUP (ORDER BY value)`: the first of the values in
//! order that at least the fraction of them does not exceed, as in DuckDB.
//!
//! DataFusion has no function of that name; here it is for plans that stay with it. Pipelines compute the same from the same
//! definition, [`tandem_pipeline::scalar::quantile`].

use std::{cmp::Ordering, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{DataFusionError, Result, ScalarValue, plan_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::format_state_name,
    },
    physical_expr::expressions::Literal,
};
use tandem_pipeline::{Type, Value, scalar};

/// Makes the function.
pub(crate) fn quantile_disc() -> AggregateUDF {
    AggregateUDF::from(QuantileDisc {
        signature: Signature::user_defined(Volatility::Immutable),
        aliases: ["percentile_disc", "quantile"].map(String::from).to_vec(),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct QuantileDisc {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for QuantileDisc {
    fn name(&self) -> &str {
        "quantile_disc"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match kinds {
            [value, fraction] if ordered(value) && fraction.is_numeric() => Ok(vec![plain(value), DataType::Float64]),
            _ => plan_err!("quantile_disc takes a value that has an order and a fraction from 0 to 1, such as 0.5"),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        Ok(kinds[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = Field::new_list_field(args.input_fields[0].data_type().clone(), true);
        let name = format_state_name(args.name, self.name());
        Ok(vec![Arc::new(Field::new(name, DataType::List(Arc::new(values)), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let fraction = args.exprs.get(1).and_then(|expr| expr.downcast_ref::<Literal>().map(Literal::value));
        let fraction = match fraction {
            Some(ScalarValue::Float64(Some(fraction))) if (0.0..=1.0).contains(fraction) => *fraction,
            _ => return plan_err!("the percentile of quantile_disc is a constant from 0 to 1, such as 0.5"),
        };
        let data_type = args.expr_fields[0].data_type().clone();
        let Ok(kind) = Type::from_arrow(&data_type) else {
            return plan_err!("quantile_disc takes a value that has an order, not {data_type}");
        };
        let descending = args.order_bys.first().is_some_and(|key| key.options.descending);
        let (distinct, values) = (args.is_distinct, Vec::new());
        Ok(Box::new(Values { kind, data_type, fraction, descending, distinct, values }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// Tells whether values of a type have an order.
fn ordered(kind: &DataType) -> bool {
    !kind.is_nested() && Type::from_arrow(kind).is_ok_and(|kind| kind != Type::Interval)
}

/// Returns the type of which values are held: not in a dictionary.
fn plain(kind: &DataType) -> DataType {
    match kind {
        DataType::Dictionary(_, values) => plain(values),
        DataType::Null => DataType::Float64,
        other => other.clone(),
    }
}

/// The values of a group, none null.
#[derive(Debug)]
struct Values {
    kind: Type,
    data_type: DataType,
    fraction: f64,
    descending: bool,
    distinct: bool,
    values: Vec<Value>,
}

impl Values {
    fn extend(&mut self, array: &dyn Array) -> Result<()> {
        // Text comes as views, too.
        let array = arrow::compute::cast(array, &self.kind.to_arrow())?;
        for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
            self.values.push(scalar::arrow::value(&array, row, &self.kind).map_err(external)?);
        }
        Ok(())
    }

    fn array(&self, values: &[Value]) -> Result<ArrayRef> {
        let array = scalar::arrow::array(values, &self.kind).map_err(external)?;
        Ok(arrow::compute::cast(&array, &self.data_type)?)
    }
}

fn external(error: tandem_pipeline::Error) -> DataFusionError {
    DataFusionError::Execution(error.message)
}

impl Accumulator for Values {
    fn update_batch(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        self.extend(&arrays[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states[0].as_list::<i32>().iter().flatten().try_for_each(|values| self.extend(&values))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let array = self.array(&self.values)?;
        let field = Arc::new(Field::new_list_field(self.data_type.clone(), true));
        let offsets = arrow::buffer::OffsetBuffer::from_lengths([array.len()]);
        Ok(vec![ScalarValue::List(Arc::new(arrow::array::ListArray::try_new(field, offsets, array, None)?))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let order = |left: &Value, right: &Value| match self.descending {
            true => scalar::order(right, left),
            false => scalar::order(left, right),
        };
        self.values.sort_by(order);
        if self.distinct {
            self.values.dedup_by(|left, right| scalar::order(left, right) == Ordering::Equal);
        }
        match scalar::quantile::discrete_place(self.values.len(), self.fraction) {
            Some(place) => ScalarValue::try_from_array(&self.array(&self.values[place..=place])?, 0),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<Value>()
    }
}
