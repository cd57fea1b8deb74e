from .price_feed import refresh_prices as refresh_prices
from .price_list import ListedPrices as ListedPrices
from .price_list import price_list as price_list
from .price_list import price_rows as price_rows
from .price_list import prices_as_csv as prices_as_csv
